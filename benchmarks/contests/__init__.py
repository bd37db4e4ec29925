"""What is measured: each contest with its contestants and the proof that they agree."""

from . import designs, lingape

CONTESTS = {**lingape.CONTESTS, **designs.CONTESTS}
