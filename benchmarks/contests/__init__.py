"""What is measured: each contest with its contestants and the proof that they agree."""

from . import lingape

CONTESTS = {**lingape.CONTESTS}
