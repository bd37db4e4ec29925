"""What takes the place of clocks while functions of a user are traced, and may be behind them."""

import datetime
import functools
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
# Nanoseconds by which a clock that is read in this frame is to be behind.
Back: TypeAlias = Callable[[FrameType], int]

CLOCKS: tuple[str, ...] = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
DATES: tuple[str, ...] = ("localtime", "gmtime", "ctime")  # of now where none is given


def of_time(back: Back) -> Iterator[tuple[str, Function, Function]]:
    """Names in the module `time`, each with what it is and what takes its place."""
    for name in (*CLOCKS, *(f"{name}_ns" for name in CLOCKS)):
        if (clock := getattr(time, name, None)) is not None:  # `thread_time` is not everywhere
            yield name, clock, _behind(clock, back, 1 if name.endswith("_ns") else 1e9)
    for name in DATES:
        date = getattr(time, name)
        yield name, date, _of_now(date, back)


def _behind(clock, back, parts):
    """A clock that counts so many nanoseconds as one."""

    @functools.wraps(clock)
    def read() -> Any:
        nanoseconds = back(sys._getframe(1))
        return clock() - (nanoseconds if parts == 1 else nanoseconds / parts)

    return read


def _of_now(date, back):
    """A date in words or parts."""

    @functools.wraps(date)
    def read(seconds: float | None = None) -> Any:
        nanoseconds = 0 if seconds is not None else back(sys._getframe(1))
        return date(time.time() - nanoseconds / 1e9 if nanoseconds else seconds)

    return read


def of_datetime(back: Back) -> dict[int, Any]:
    """What takes the place of the module `datetime` and of its `datetime`, by their ids.

    Neither can be changed itself: the class is in C, and others hold the module.
    """
    real = datetime.datetime

    class Real(type):
        """Instances are real ones."""

        def __call__(cls, *args: Any, **options: Any) -> Any:
            return real(*args, **options)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    def now(frame: FrameType, zone: datetime.tzinfo | None) -> datetime.datetime:
        return real.now(zone) - datetime.timedelta(microseconds=back(frame) / 1e3)

    class Behind(real, metaclass=Real):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return now(sys._getframe(1), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return now(sys._getframe(1), datetime.UTC).replace(tzinfo=None)

    module = ModuleType(datetime.__name__, datetime.__doc__)
    vars(module).update(vars(datetime) | {"datetime": Behind})
    return {id(real): Behind, id(datetime): module}
