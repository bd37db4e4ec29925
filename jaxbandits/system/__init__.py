"""What the operating system is asked for: files, signals, progress on a terminal."""
