"""What is measured: each contest with its contestants and the proof that they agree."""

from . import designs, gse, lingape, rage

CONTESTS = {**lingape.CONTESTS, **gse.CONTESTS, **rage.CONTESTS, **designs.CONTESTS}
