"""Stand-ins for data sets that we may not distribute: synthetic rows of a similar structure."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..parameters import Normal
from ..precision import double, floats, numpy_for
from ..types import Key
from .instance import Instance, tabular
from .options import Pair, check_room, checked

# Correlations of curb weight, width, engine size, city and highway miles per gallon, and price in
# the UCI Automobile data set (Schlimmer, 1987), and mean and standard deviation of each column in
# [0, 1].
CARS: Float[np.ndarray, "6 6"] = np.array(
    [
        [1.00, 0.87, 0.85, -0.75, -0.79, 0.83],
        [0.87, 1.00, 0.73, -0.63, -0.68, 0.75],
        [0.85, 0.73, 1.00, -0.65, -0.68, 0.87],
        [-0.75, -0.63, -0.65, 1.00, 0.97, -0.69],
        [-0.79, -0.68, -0.68, 0.97, 1.00, -0.70],
        [0.83, 0.75, 0.87, -0.69, -0.70, 1.00],
    ]
)
MEANS: Float[np.ndarray, " 6"] = np.array([0.41, 0.48, -1.55, 0.34, 0.39, -2.05])
STDS: Float[np.ndarray, " 6"] = np.array([0.20, 0.18, 0.55, 0.18, 0.18, 1.08])
SKEWED: Bool[np.ndarray, " 6"] = np.array(
    [False, False, True, False, False, True]
)  # given by their logarithms


@checked
@double
def cars(key: Key, num_arms: Pair, *, noise_var: Normal = 0.1) -> Instance:
    """Synthetic cars: five features, and a price that is not linear in them.

    A stand-in for `automobile`, with the correlations of its columns: normal columns, lognormal for
    engine size and price, clipped to [0, 1].

    Args:
      key: a JAX random key; another key gives other cars.
      num_arms: K (static).
      noise_var: variance of a reward.

    >>> import jax
    >>> cars(jax.random.key(0), 8).arms.shape
    (8, 5)
    """
    check_room(num_arms, 6, num_arms=num_arms)
    xp, normal = numpy_for(key), jax.random.normal(key, (num_arms, 6))
    rows = MEANS + STDS * floats(normal @ np.linalg.cholesky(CARS).T)
    rows = xp.clip(xp.where(SKEWED, floats(jnp.exp(rows)), rows), 0.0, 1.0)
    return tabular(rows[:, :-1], rows[:, -1], noise_var=noise_var)


@checked
@double
def motor(key: Key, num_arms: Pair, *, noise_var: Normal = 0.1) -> Instance:
    """Synthetic records of an electric motor: eleven sensors, and the temperature of its magnets.

    A stand-in for `electric_motor`: speed, torque and the temperatures of air and coolant are
    independent; currents and voltages follow from the first two, the other temperatures from the
    losses and the coolant, up to noise. All are in [0, 1].

    Args:
      key: a JAX random key; another key gives other records.
      num_arms: K (static).
      noise_var: variance of a reward.

    >>> import jax
    >>> motor(jax.random.key(0), 8).arms.shape
    (8, 11)
    """
    check_room(12, num_arms, num_arms=num_arms)
    free, rest = jax.random.split(key)
    xp = numpy_for(key)
    speed, torque, air, coolant = floats(jax.random.uniform(free, (4, num_arms)))
    noise = 0.03 * floats(jax.random.normal(rest, (12, num_arms)))
    signed_torque = 2.0 * torque - 1.0
    weakening = xp.maximum(0.0, speed - 0.5)  # above its base speed the field is weakened
    direct = 1.0 - 0.4 * signed_torque**2 - 1.2 * weakening
    losses = 0.6 * signed_torque**2 + 0.4 * speed**2
    columns = [
        0.3 + 0.4 * air,
        coolant,
        0.5 - 0.5 * speed * signed_torque,
        0.15 + 0.7 * speed * direct + 0.1 * signed_torque,
        speed,
        torque,
        direct,
        torque,
        0.55 * coolant + 0.3 * losses + 0.1 * air,
        0.40 * coolant + 0.50 * losses + 0.05 * air,
        0.25 * coolant + 0.70 * losses,
        0.30 * coolant + 0.35 * losses + 0.30 * speed,
    ]
    rows = xp.clip(xp.stack(columns) + noise, 0.0, 1.0).T
    return tabular(rows[:, :-1], rows[:, -1], noise_var=noise_var)
