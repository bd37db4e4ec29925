"""Files, signals, progress on a terminal, and what stored files call the things they are about."""
