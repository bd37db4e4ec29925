"""From designs and weights to whole numbers of draws."""
