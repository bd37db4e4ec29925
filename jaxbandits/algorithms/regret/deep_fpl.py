"""DeepFPL: follow the perturbed leader with a neural network, trained on perturbed rewards."""

from typing import Annotated

import jax.numpy as jnp

from ...core import Algorithm
from ...parameters import Nonnegative, Positive, Size, choice, constructor
from ...types import Arms
from ..loops import deep


@constructor(contextual=True)
def deep_fpl(
    arms: Arms,
    *,
    a: Nonnegative = 1.0,
    noise: Annotated[str, choice("fresh", "fixed")] = "fresh",
    hidden: Size = 50,
    activation: deep.Activation = "relu",
    rate: Positive = 0.001,
    batch: Size = 32,
    precision: deep.Precision = "single",
) -> Algorithm:
    """DeepFPL (Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier, 2020).

    A network with one hidden layer scores the examples shown, and the one with the largest score
    is chosen. Then the B most recent rewards y are perturbed, `y' = y + a z` with z standard
    normal, and the network takes one step of Adam on the mean of `softplus(l) - y' l`, l the
    logit of an example. The noise makes the learner explore, as in GLM-FPL.

    Args:
      arms: `[N, f]` features of all examples; a round shows some of them by their indices.
      a: standard deviation of a perturbation.
      noise: "fresh", drawn anew for all B in every round, or "fixed", drawn once for each reward.
      hidden: units of the hidden layer.
      activation: "relu" or "tanh".
      rate: step size of Adam, whose betas are 0.9 and 0.999 and whose epsilon is 1e-7.
      batch: B, the number of rewards that a step uses.
      precision: "single" or "double", of the network; everything else is double.
    Returns:
      An `Algorithm` for contextual problems that is never done, `ask(key, state, shown)`. Its
      answer is the choice of the round. `info`: the sum of all rewards (`reward`), and the number
      of steps on outputs that were not finite (`nonfinite`), after which the network is of no use.
    Raises:
      ValueError: a bad option.
    Deviations:
      The paper does not tell the loss, whether noise is fresh, the initial weights (here those of
      Glorot and Bengio, biases zero), nor that pixels lie in [0, 1]. Before round B the mean is
      over the examples so far. Adam adds epsilon to the root of the bias-corrected second moment;
      some libraries add it before that correction. Networks are in single precision by default: on
      scikit-learn's digits, 100 runs of 2,000 rounds, the average reward differed by .007 +- .0044
      from that in double precision, where the initial weights are others too.
    Setting:
      average reward, contextual, a neural network.
    Assumptions:
      0 or 1, a function of the features that is not known. Arms without features: no, the features
      are learnt from.
    Guarantee:
      none.
    Cost:
      a round: the network for K examples forwards, and for those of a step of training back.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Section 5.2. https://arxiv.org/abs/1906.08947
    Example:
      >>> import numpy as np
      >>> import jaxbandits as jb
      >>> points = np.random.default_rng(0).normal(size=(200, 4))
      >>> instance = jb.instances.labelled(points, points[:, 0] > 0, shown=5)
      >>> runs = jb.simulate(instance, jb.deep_fpl, horizon=300, replications=4)
      >>> bool(runs.info["reward"].mean() / 300 > instance.random_average(runs.replication).mean())
      True
    """
    settings = deep.Settings(hidden, activation, rate, batch, precision)
    perturb = {"fresh": deep.fresh_noise, "fixed": deep.fixed_noise}[noise]
    return deep.greedy(arms, settings, perturb(jnp.asarray(a, settings.dtype), settings))


@constructor(contextual=True)
def deep_fl(
    arms: Arms,
    *,
    hidden: Size = 50,
    activation: deep.Activation = "relu",
    rate: Positive = 0.001,
    batch: Size = 32,
    precision: deep.Precision = "single",
) -> Algorithm:
    """DeepFL: `deep_fpl` without noise, a baseline of the same paper (Kveton et al., 2020).

    Args:
      arms, hidden, activation, rate, batch, precision: as in `deep_fpl`.
    Returns:
      As in `deep_fpl`.
    Raises:
      ValueError: a bad option.
    Deviations:
      Those of `deep_fpl`.
    Setting:
      average reward, contextual, a neural network.
    Assumptions:
      0 or 1, a function of the features that is not known. Arms without features: no, the features
      are learnt from.
    Guarantee:
      none.
    Cost:
      a round: the network for K examples forwards, and for those of a step of training back.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Section 5.2. https://arxiv.org/abs/1906.08947
    Example:
      >>> import numpy as np
      >>> import jaxbandits as jb
      >>> instance = jb.instances.labelled(np.eye(4), [0, 0, 1, 1], shown=2)
      >>> runs = jb.simulate(instance, jb.deep_fl, horizon=50, replications=4)
      >>> runs.arm_pulls.sum(1)
      array([50, 50, 50, 50])
    """
    settings = deep.Settings(hidden, activation, rate, batch, precision)
    return deep.greedy(arms, settings, deep.no_noise)
