"""Arrays in, arrays out: the mathematics that algorithms share. Nothing here knows a `Move`."""
