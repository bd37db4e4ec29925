"""What is measured: each contest with its contestants and the proof that they agree."""

from . import designs, gse, lingape

CONTESTS = {**lingape.CONTESTS, **gse.CONTESTS, **designs.CONTESTS}
