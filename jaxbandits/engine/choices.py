"""Which engine plays a cell, and in how many lanes."""

import os
from collections.abc import Callable
from typing import NamedTuple

from ..compilers.cpp import Unsupported, compiler, warn_of_missing
from ..compilers.cuda import found_library
from .checks import Devices, is_gpu, lanes_at_ease, platform_of
from .device_loop import FUSED, Shape
from .engine_reasons import FASTEST
from .schedules import engine_for
from .traits import Sizes

# What the lanes of a CPU may hold between two rounds: within a round they need several times as
# much, and that should fit the second-level cache. Phases gain more from designs in common.
CACHE_BYTES: dict[str, int] = {"cpu": 9 * 2**14}
PHASED_BYTES: dict[str, int] = {"cpu": 2**20}
DEVICE_BYTES: int = 2**32  # the same for the memory of an accelerator
# Lanes times squared bytes of the largest table of what XLA computes for some lanes after others;
# for single arms less, as all lanes renew their designs in the same rounds. Until a call has
# computed them for all lanes neither Ctrl-C nor a bar is served: with 200 arms in 20 dimensions one
# of RAGE with 256 lanes took minutes, and one of lazy track-and-stop with 32 lanes four seconds.
BLOCKS_BYTES: dict[bool, int] = {False: 2**46, True: 2**42}  # by whether a move is one arm
FEWEST_LANES: int = 32  # unless there are as few replications: narrower operations cost as much
USUAL_LANES: int = 64  # are worth more bytes than those above, up to the bytes of phases
# More gain nothing and leave more of them idle at the end. With the native engine, whose phases are
# short, more gain a twentieth where each lane gets enough replications.
MOST_LANES: dict[str, int] = {"cpu": 256}
MOST_NATIVE_LANES: int = 512
# More lanes than these only where each gets so many replications.
SHORT_LANES: int = 128
REPLICATIONS_PER_LANE: int = 32
RECORD_BYTES: int = 2**26  # of all records of a call
# Replications that wait for each lane when a call begins. A CPU does not play between two calls, so
# calls should be few.
WAITING: dict[str, int] = {"cpu": 32}
# Lanes come in full vector registers, so that every lane runs the same instructions; the native
# engine computes two registers at a time, a GPU a block of threads. Lanes in turn are single.
VECTOR: dict[str, int] = {
    "xla": 8,
    "in turn": 1,
    **{name: x.side_by_side for name, x in FUSED.items()},
}
# One lane in so many waits before ended ones are written out and refilled; and one lane in so many
# gets an instance of its own at once.
LANES_PER_REFILL: int = 64
LANES_PER_DRAW: int = 8
FEW_REPLICATIONS: int = 1000  # up to which compiling takes longer than playing what lanes share
# The same where the largest table of what they share has so many bytes: with 200 arms in 20
# dimensions (3 MB) XLA played RAGE three times as fast and saved .7 seconds of a processor a
# replication, where it compiles in some ten seconds more; with 100 arms in 10 (2 MB) 0.03 seconds.
SHARED_BYTES: int = 5 * 2**19
FEW_OF_LARGE: int = 32
# Of a lane; larger ones are played one by one. Side by side, lanes wait for each other's stages and
# loops: GSE on 10^5 arms (1.7 MB) took ten times as long for one replication, and 1.4 times for 16.
# Fewer replications than the native engine has lanes count with the empty lanes: LinGapE, LinUCB
# and top-two on 3,000 and 10,000 arms took 5 to 8 times as long for one replication, 1.4 to 2.2
# times as long for four, and about as long for eight.
ALONE_BYTES: int = 2**20
# Of the tables that all lanes read, for each replication where they are few: what a round computes
# grows with them. GSE with D-optimal designs for 1,000 arms in 50 and 200 dimensions took 10 and 14
# times as long for one replication, 2.9 and 3.6 times as long for four.
TABLE_BYTES: int = 2**19
# Of a lane, up to which the engine `cuda` was the quicker one; and of a lane whose rounds have
# loops of their own. In XLA all lanes wait for the slowest in each of these loops: GLM-TSL with
# 13 KB a lane ran 0.03 million rounds per second there, and 0.74 million by `cuda`.
THREAD_BYTES: int = 5000
LOOPING_BYTES: int = 2**14

NO_COMPILER: str = "found none (g++, clang++, what CXX names, or the package ziglang)"

_failed: dict[str, str] = {}  # engines that are not tried again, and how each has failed


class Choice(NamedTuple):
    """An engine, and why it plays."""

    engine: str
    reason: str = FASTEST  # see `Runs.meta`

    def instead(self, error: Exception) -> "Choice":
        """XLA, which plays what this engine cannot."""
        why = error.reason if isinstance(error, Unsupported) else f"failed: {error}"
        return Choice("xla", f"{self.engine} {why}")

    def begun_with(self, engine: str | None) -> "Choice":
        """The engine with which stored replications were begun, if any were."""
        if engine in (None, self.engine):
            return self
        return Choice(engine, f"stored replications were begun with {engine}")


def avoid(engine: str, error: Exception) -> None:
    """Not choose this engine again in this process: it has failed."""
    _failed[engine] = str(error)


def automatic(
    sizes: Sizes,
    platform: str,
    replications: int,
    has_loops: Callable[[], bool] = lambda: False,
    largest_table: Callable[[], int] = lambda: 0,
) -> Choice:
    """The engine of `auto`: the quicker one, compiling and playing together.

    The native engine compiles in a third to two thirds of the time of XLA, and plays 1.1 to 4 times
    as fast. But a costly design that lanes have in common, such as that of RAGE for the arms alive,
    XLA computes once: it played RAGE two to five times as fast, which pays after some thousand
    replications, or some tens where designs are large. On an H100 the engine `cuda` was up to nine
    times as fast as XLA for one arm a round, and 1.3 times as fast for a lane of 5 KB. XLA plays
    very large lanes one by one, and a few large ones, see `schedules`.

    Args:
      has_loops: whether rounds have loops of their own; asked where it matters.
      largest_table: bytes of the largest table of what lanes share; asked where it matters.
    """
    moves = sizes.traits.moves
    if platform == "cpu":
        share = moves.in_common and not sizes.own
        if not share and _alone(sizes, replications):  # one of `SCHEDULES`
            return Choice("in turn", f"{FASTEST}: lanes are large, or too few for large tables")
        if named := os.environ.get("CXX"):
            warn_of_missing(named)
        if share and _many_for_sharing(replications, largest_table):
            return Choice("xla", f"{FASTEST}: it computes designs that lanes share once")
        if compiler() is None:
            named = f"CXX names {named!r}, which is not found" if named else NO_COMPILER
            return Choice("xla", f"native needs a C++ compiler: {named}")
        return _unless_failed("native")
    if not is_gpu(platform):
        return Choice("xla", f"{FASTEST}: the device is a {platform}")
    if not moves.one_arm:
        return Choice("xla", f"{FASTEST}: a move is a phase")
    if not (sizes.lane <= THREAD_BYTES or (sizes.lane <= LOOPING_BYTES and has_loops())):
        return Choice("xla", f"{FASTEST}: a lane of {sizes.lane} bytes is large for a thread")
    if not found_library():
        return Choice("xla", "cuda needs NVIDIA's run-time compiler (NVRTC), which is not found")
    return _unless_failed("cuda")


def _many_for_sharing(replications, largest_table):
    """Whether XLA saves more than it takes longer to compile, where lanes share designs."""
    if replications > FEW_REPLICATIONS:
        return True
    return replications > FEW_OF_LARGE and largest_table() >= SHARED_BYTES


def _unless_failed(engine):
    if engine in _failed:
        return Choice("xla", f"{engine} has failed before: {_failed[engine]}")
    return Choice(engine)


def _alone(sizes, replications):
    """Whether lanes are so large, or would be so empty, that one by one they take less time."""
    fewest = fewest_lanes("native")
    if replications <= fewest // 4 and sizes.tables > replications * TABLE_BYTES:
        return True
    return sizes.lane * fewest > ALONE_BYTES * min(replications, fewest)


def shape_of(
    sizes: Sizes,
    *,
    replications: int,
    batch: int | None,
    devices: Devices,
    cores: int = 1,
    engine: str = "xla",
    largest_table: Callable[[], int] = lambda: 0,
) -> Shape:
    """Lanes of a device or a core, and what follows from their number; `engine` is not "auto".

    By default as many lanes as the cache or the device holds, a power of 2, so that few shapes
    are compiled; never many more than there are replications. All cores run the program of one,
    so the last bits do not depend on their number. Lanes in turn are programs of one lane whatever
    their number is: each core then gets its share.
    """
    number = 1 if devices is None else len(devices)
    platform = platform_of(devices)
    engine = engine_for(sizes.traits.contextual, platform, engine)
    if batch is None:
        number *= cores if engine == "in turn" else 1
        share = -(-replications // number)
        lanes = _default_lanes(sizes, share, platform, engine, largest_table)
        if engine == "in turn" and cores > 1:  # so that each has some
            lanes = min(lanes, _power(share))
    else:
        lanes = -(-min(batch, replications) // number)
    vector = fewest_lanes(engine)
    lanes = -(-lanes // vector) * vector
    rows = max(1, RECORD_BYTES // (8 * sizes.record))
    refill_most = max(vector, lanes // LANES_PER_DRAW) if sizes.own else lanes
    refill_from = max(1, lanes // LANES_PER_REFILL)
    queue = min(WAITING.get(platform, 8) * lanes, rows)
    moves = sizes.traits.moves
    return Shape(lanes, refill_from, refill_most, queue, moves, engine, is_gpu(platform))


def fewest_lanes(engine: str) -> int:
    """Lanes of a device at least, and in steps of as many."""
    return VECTOR.get(engine, VECTOR["xla"])


def _default_lanes(sizes, share, platform, engine, largest_table):
    """Lanes for a share of the replications, where the user does not say how many."""
    most = PHASED_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
    one_arm = sizes.traits.moves.one_arm
    if one_arm:
        held = CACHE_BYTES.get(platform, DEVICE_BYTES) // sizes.lane
        most = max(held, min(most, USUAL_LANES))
    useful = MOST_LANES.get(platform, 2**17)
    if engine == "native" and not one_arm and share >= MOST_NATIVE_LANES * REPLICATIONS_PER_LANE:
        useful = MOST_NATIVE_LANES
    most = min(useful, max(FEWEST_LANES, most))
    if platform == "cpu":
        most = min(most, lanes_at_ease(sizes.lane))
    if platform == "cpu" and engine == "xla" and (table := largest_table()):
        most = min(most, max(fewest_lanes(engine), BLOCKS_BYTES[one_arm] // table**2))
    if platform == "cpu" and one_arm:
        most = min(most, max(SHORT_LANES, _power(max(1, share // REPLICATIONS_PER_LANE))))
        if engine == "native":  # it holds two registers in the cache
            most = min(most, USUAL_LANES)
    return min(_power(most), 2 * _power(max(1, share - 1)))


def _power(number):
    """The largest power of 2 up to `number`."""
    return 1 << (int(number).bit_length() - 1)
