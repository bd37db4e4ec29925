"""What is measured: each contest with its contestants and the proof that they agree."""

from . import lingape, m_lingape

CONTESTS = {**lingape.CONTESTS, **m_lingape.CONTESTS}
