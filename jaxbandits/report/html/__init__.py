"""One self-contained page about the results in a folder."""
