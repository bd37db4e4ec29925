"""What algorithms that differ by their rules have in common."""
