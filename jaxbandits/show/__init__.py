"""What all figures share: marks, words along axes, sizes; and the figures of `Runs`."""
