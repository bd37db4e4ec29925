"""Speed comparisons: each has several programs (contestants) and a check that they agree."""

from . import deep_fpl, designs, glm_tsl, gse, lingape, logistic_mle, m_lingape, rage

MODULES = (lingape, m_lingape, rage, gse, glm_tsl, deep_fpl, logistic_mle, designs)
CONTESTS = {name: contest for module in MODULES for name, contest in module.CONTESTS.items()}
