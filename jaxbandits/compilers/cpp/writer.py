"""Writes one C++ program: its variables, arrays and loops, and its equations by their rules."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from ..jaxprs import bind, is_literal, literal_value, rule_for
from .known import entries_of, folded
from .last_uses import given_up, last_readers
from .values import (
    ArraySpec,
    Index,
    Unsupported,
    Value,
    constant,
    flat,
    in_array,
    in_lanes,
    known_entry,
    literal,
    spec_of,
)

LANES: int = 8  # most lanes of a vector register; lanes.h finds out how many this machine has
# A program goes through each statement for this many groups of lanes: a statement waits for the
# one before it in its own group, and not for the other group. Names of variables that each group
# has for itself contain "@".
GROUPS: int = 2
UNROLL: int = 12  # up to this many entries are written one by one
WORD: int = 8  # bytes of the widest type
MOST_IN_PAIRS: int = 256  # entries of the largest array that is computed two at a time
# (equation, operands, writer) -> results; see `rule_for`.
Rule: TypeAlias = Callable[[JaxprEqn, Sequence[Value], "Writer"], list[Value]]
R = TypeVar("R", bound=Callable)
RULES: dict[str | Primitive, Rule] = {}
ENTRYWISE: set[Rule] = set()  # rules that read each entry of their operands once


def rule(*primitives: str | Primitive, entrywise: bool = False) -> Callable[[R], R]:
    """Decorate the rule of these primitives; those of JAX are given by name.

    Args:
      entrywise: whether the rule reads each entry of its operands once, where it is needed.
    """

    def register(function):
        RULES.update(dict.fromkeys(primitives, function))
        ENTRYWISE.update([function] if entrywise else ())
        return function

    return register


class Machine(NamedTuple):
    """What a program must know of the machine that runs it."""

    lanes: int  # most lanes of a vector
    groups: int  # most groups of lanes
    # Most bytes on the stack of one array and of all arrays.
    largest_on_stack: int
    stack: int
    off_stack: int  # most bytes of all others
    # Whether each lane has memory for larger arrays that the program is given, its scratch;
    # otherwise each thread has memory of its own.
    scratch: bool = False
    # Most bytes of each lane in memory on the chip, for large arrays among the arguments.
    on_chip: int = 0


# The stack of a thread has some megabytes; the linker can address 2 GiB.
CPU: Machine = Machine(LANES, GROUPS, 2**17, 2**20, 2**30)


class Writer:
    """The text of a program, and the values that it gets from the surrounding JAX program."""

    def __init__(
        self,
        groups: int = GROUPS,
        machine: Machine = CPU,
        *,
        gives_away: bool = False,
        compact: bool = False,
    ) -> None:
        self.groups: int = groups
        self.machine: Machine = machine
        # Whether the surrounding program computes all that does not depend on arguments, also from
        # tables that are known here: once, and not in each register.
        self.gives_away: bool = gives_away
        # Whether products of small tables are written in loops, which compile sooner and run as
        # fast in a program that is long anyway.
        self.compact: bool = compact
        self.scratch: int = 0  # bytes of each lane
        self.on_chip: int = 0  # bytes of each lane
        self.head: list[str] = []
        self.lines: list[str] = []
        self.functions: dict[Any, str] = {}
        self.shared: list[Any] = []  # values of the surrounding program
        self.mask: str | None = None  # lanes that take the branch or step written now; None: all
        self._on_stack = self._off_stack = 0  # bytes
        self._count = 0
        self._known = {}  # values by the id of the value in the surrounding program
        self._arrays: dict[tuple[str, str], str] = {}  # names of constant arrays

    def name(self, start: str = "v", varies: bool = False) -> str:
        """A new name; the underscore tells it from names of types such as i64."""
        self._count += 1
        return f"{start}_{self._count}" + ("@" if varies else "")

    def line(self, text: str) -> None:
        """Add a line, once for each group of lanes if it names variables of groups."""
        groups = range(self.groups) if "@" in text else [0]
        self.lines.extend(text.replace("@", f"_{group}") for group in groups)

    def any(self, mask: str) -> str:
        """The expression of whether a mask is on in any lane."""
        parts = [mask.replace("@", f"_{group}") for group in range(self.groups)]
        return f"any({' | '.join(parts)})"

    @contextlib.contextmanager
    def block(self, opening: str = "") -> Generator[None]:
        """Put the lines that follow in braces."""
        self.line(opening + "{")
        yield
        self.line("}")

    @contextlib.contextmanager
    def under(self, mask: str | None) -> Generator[None]:
        """Make a mask that of the lines that follow."""
        before, self.mask = self.mask, mask
        yield
        self.mask = before

    def loops(
        self, shape: Sequence[int], body: Callable[[Index], object], unroll: int = UNROLL
    ) -> None:
        """Write `body(index)` for each index of a shape: one by one if few, else in loops."""
        if math.prod(shape) <= unroll:
            for index in product(*map(range, shape)):
                body(index)
            return
        index, depth = [], 0
        for n in shape:
            if n == 1:
                index.append(0)
                continue
            i = self.name("i")
            index.append(i)
            self.line(f"for (i64 {i} = 0; {i} < {n}; {i}++) {{")
            depth += 1
        body(tuple(index))
        self.line("}" * depth)

    def new(
        self, spec: ArraySpec, varies: bool, mutable: bool = False, *, on_chip: bool = False
    ) -> Value:
        """A new array; `mutable` where its entries will change, as those of a loop's carry do.

        Args:
          on_chip: whether it is in the memory on the chip, see `Machine`; it must have room.
        """
        name = self.name(varies=varies)
        type = f"v{spec.type}" if varies else spec.type
        if on_chip:
            first, self.on_chip = self.on_chip, self.on_chip + spec.size * WORD
            memory = f"on_chip + {first} * CHIP_LANES, CHIP_LANES, CHIP_LANE"
            self.line(f"const Spread<{type}> {name}({memory});")
        else:
            self.line(self._declaration(type, name, max(1, spec.size), varies))
        array = in_array(name, spec, varies, reads={name: True} if mutable else None)
        return array._replace(owned=True)

    def _declaration(self, type, name, size, varies):
        """The line that declares an array: large ones are not on the stack."""
        each = size * WORD * (self.machine.lanes if varies else 1)
        total = each * (self.groups if varies else 1)
        if each <= self.machine.largest_on_stack and self._on_stack + total <= self.machine.stack:
            self._on_stack += total
            return f"{type} {name}[{size}];"
        self._off_stack += total
        most = self.machine.off_stack
        if self._off_stack > most:
            limit = f"{most >> 30} GiB" if most >= 2**30 else f"{most >> 20} MiB"
            raise Unsupported(f"a program with more than {limit} of tables")
        if not self.machine.scratch:
            return f"static thread_local {type} {name}[{size}];"
        first, self.scratch = self.scratch, self.scratch + total
        return f"const Spread<{type}> {name}(scratch + {first} * lanes, lanes, at_0);"

    def in_pairs(self, spec: ArraySpec) -> bool:
        """Whether an array of this shape is stored, two entries at a time; see `pairs`."""
        return self.machine.lanes > 1 and 2 <= spec.size <= MOST_IN_PAIRS

    def pairs(self, array: Value, two: str, one: str) -> None:
        """Write a statement for entries 0 and 1 of an array, 2 and 3, and so on.

        Neither of the two waits for the other, so this is faster than one after the other.

        Args:
          two: the statement; `{at}` is the position of the first and `{to}` its address.
          one: the same for the last entry where their number is odd.
        """
        i, size = self.name("i"), array.spec.size
        with self.block(f"for (i64 {i} = 0; {i} < {size - size % 2}; {i} += 2) "):
            self.line(two.format(at=i, to=f"({array.array} + {i})"))
        if size % 2:
            self.line(one.format(at=size - 1, to=f"({array.array} + {size - 1})"))

    def store(self, array: Value, index: Index, text: str) -> None:
        """Assign an expression to an entry of an array."""
        self.line(f"{array.read(index)} = {text};")

    def fill(self, array: Value, value: Value, mask: str | None = None) -> Value:
        """Assign a value to an array, with a mask only in its lanes; returns the array."""

        def one(index):
            text = in_lanes(value.read(index), value, array.varies)
            if mask is not None:
                text = f"select_{value.spec.type}({mask}, {text}, {array.read(index)})"
            self.store(array, index, text)

        self.loops(value.shape, one, unroll=1 if value.heavy else UNROLL)
        return array

    def materialised(self, value: Value) -> Value:
        """The value, computed once and stored in an array unless reading it is cheap."""
        return value if value.cheap else self.fill(self.new(value.spec, value.varies), value)

    def as_array(self, value: Value) -> Value:
        """The value in an array, whose entries have addresses."""
        if value.array is not None:
            return value
        if value.known is not None and any(value.known.strides):
            return in_array(self._constants(value.known, value.spec), value.spec, False)
        return self.fill(self.new(value.spec, value.varies), value)

    def scalar(self, type: str, text: str) -> str:
        """The name of a new constant that holds the value of an expression."""
        name = self.name(varies=type[0] == "v")
        self.line(f"const {type} {name} = {text};")
        return name

    def outer_value(self, x: Any, spec: ArraySpec) -> Value:
        """A value of the surrounding program, which becomes an argument when it is first read."""
        if np.ndim(x) == 0 and isinstance(x, np.ndarray | np.generic | int | float | bool):
            return constant(x, spec)._replace(outer=np.asarray(x))
        if id(x) in self._known:
            return self._known[id(x)]
        name = []

        def read(index):
            if not name:
                name.append(self._passed_in(x, spec))
            return f"{name[0]}[{flat(index, spec.shape)}]"

        entries = entries_of(x)
        value = self.table(entries, spec) if entries is not None else Value(spec, False, read)
        self._known[id(x)] = value = value._replace(outer=x)
        return value

    def table(self, entries: np.ndarray, spec: ArraySpec) -> Value:
        """A table whose entries are known; a loop reads them from a constant array."""
        if entries.size and not any(entries.strides):
            return constant(entries.flat[0], spec)

        def read(index):
            number = known_entry(entries, index)
            if number is not None:
                return literal(number, spec.type)
            return f"{self._constants(entries, spec)}[{flat(index, spec.shape)}]"

        of_integers = entries.size and entries.dtype.kind in "iu"
        bounds = (int(entries.min()), int(entries.max())) if of_integers else None
        return Value(spec, False, read, known=entries, range=bounds)

    def _constants(self, entries, spec):
        """The name of a constant array with these entries."""
        texts = ", ".join(literal(x, spec.type) for x in entries.flat)
        if (spec.type, texts) not in self._arrays:
            self._arrays[spec.type, texts] = name = self.name("k")
            self.head.append(f"static const {spec.type} {name}[{spec.size}] = {{{texts}}};")
        return self._arrays[spec.type, texts]

    def _passed_in(self, x, spec):
        """The name of a new argument of the program."""
        name, pointer = self.name("s"), f"in[inputs + {len(self.shared)}]"
        self.shared.append(x)
        if spec.type == "b64":
            self.head.append(self._declaration("b64", name, max(1, spec.size), False))
            mask = f"-(i64)(((const uint8_t *){pointer})[i] != 0)"
            self.head.append(f"for (i64 i = 0; i < {spec.size}; i++) {name}[i] = {mask};")
        else:
            self.head.append(f"const {spec.type} *const {name} = (const {spec.type} *){pointer};")
        return name

    def evaluate(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr; the surrounding program computes equations of its own values."""
        uses = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not is_literal(x))
        uses.update(x for x in jaxpr.outvars if not is_literal(x))
        values, last = {}, last_readers(jaxpr)
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            values[var] = self.outer_value(const, spec_of(var.aval))
        for var, value in zip(jaxpr.invars, args, strict=True):
            values[var] = self.materialised(value) if uses[var] > 1 else value

        def read(atom, reader):
            if is_literal(atom):
                return self.outer_value(literal_value(atom), spec_of(atom.aval))
            value = values[atom]
            if not value.owned or uses[atom] == 1:
                return value
            return value._replace(owned=given_up(atom, reader, jaxpr, values, last))

        for k, eqn in enumerate(jaxpr.eqns):
            try:
                results = self._results(eqn, [read(atom, k) for atom in eqn.invars])
            except Unsupported as error:
                error.met_in(eqn)
                raise
            for var, value in zip(eqn.outvars, results, strict=True):
                small = value.spec.size == 1 and not value.cheap
                if uses[var] and (small or (uses[var] > 1 and not value.cheap)):
                    value = self._computed_now(value)
                values[var] = value
        return [read(atom, len(jaxpr.eqns)) for atom in jaxpr.outvars]

    def _computed_now(self, value):
        """A value that is not cheap, computed once."""
        if value.spec.size != 1:
            return self.materialised(value)
        name = self.scalar(value.type, value.read((0,) * len(value.shape)))
        return value._replace(
            read=lambda index: name, cheap=True, array=None, reads={}, heavy=False
        )

    def _results(self, eqn, operands):
        """The results of an equation: by its rule, or in the surrounding program."""
        write = rule_for(eqn, RULES)
        known, outer = [x.known for x in operands], [x.outer for x in operands]
        constants = all(isinstance(x, np.ndarray) for x in outer)
        if all(x is not None for x in known) and (entries := folded(eqn, known)) is not None:
            table = self.table(entries, spec_of(eqn.outvars[0].aval))
            outside = outer and not constants and all(x is not None for x in outer)
            return [table._replace(outer=jnp.asarray(entries)) if outside else table]
        if write is None or (self.gives_away and any(x is not None for x in outer)):
            outer = [x if o is None else o for x, o in zip(known, outer, strict=True)]
        # Constants are left to the C++ compiler where there is a rule.
        constants = write is not None and constants
        if outer and all(x is not None for x in outer) and not constants:
            found = bind(eqn, outer)
            pairs = zip(found, eqn.outvars, strict=True)
            return [self.outer_value(x, spec_of(var.aval)) for x, var in pairs]
        if write is None:
            raise Unsupported(f"the operation {eqn.primitive.name!r}")
        if write not in ENTRYWISE:
            operands = [self.materialised(x) if x.heavy else x for x in operands]
        return write(eqn, operands, self)

    def call(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """The results of a function given as a closed jaxpr."""
        return self.evaluate(closed.jaxpr, closed.consts, args)


def scalar_spec(spec: ArraySpec) -> ArraySpec:
    """The `ArraySpec` of one entry."""
    return ArraySpec((), spec.type)
