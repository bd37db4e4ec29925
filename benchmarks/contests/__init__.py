"""What is measured: each contest with its contestants and the proof that they agree."""

from . import glm_tsl, lingape, logistic_mle, m_lingape

CONTESTS = {
    **lingape.CONTESTS,
    **m_lingape.CONTESTS,
    **glm_tsl.CONTESTS,
    **logistic_mle.CONTESTS,
}
