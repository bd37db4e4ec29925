"""Writes the C++ of one program: variables, arrays, loops, and equations by their rules."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from itertools import product
from typing import Any, TypeAlias, TypeVar

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive

from ..jaxprs import bind, dtype_of, is_literal, rule_for
from .values import (
    Index,
    Kind,
    Unsupported,
    Value,
    constant,
    flat,
    in_array,
    in_lanes,
    kind_of,
)

LANES: int = 8  # at most, of a vector register; the header tells how many this machine has
# Groups of lanes that take each step side by side, since each step waits for the one before
# and two groups do not wait for each other. What is a group's own has "@" in its name.
GROUPS: int = 2
UNROLL: int = 12  # up to this many entries are written one by one
ENTRY: dict[bool, int] = {True: 8 * LANES, False: 8}  # bytes at most, by whether it varies by lane
MOST_ON_STACK, STACK = 2**17, 2**20  # bytes of an array and of all: threads have some megabytes
BESIDE: int = 2**30  # bytes of the arrays that lie elsewhere; what links them reaches twice as far
# (equation, operands, writer) -> results; see `rule_for`.
Rule: TypeAlias = Callable[[JaxprEqn, Sequence[Value], "Writer"], list[Value]]
R = TypeVar("R", bound=Callable)
RULES: dict[str | Primitive, Rule] = {}
ENTRYWISE: set[Rule] = set()  # of these rules, those that read each entry once, when it is needed


def rule(*primitives: str | Primitive, entrywise: bool = False) -> Callable[[R], R]:
    """Decorate the rule of primitives, JAX's by name; `entrywise` reads each entry once."""

    def register(function):
        RULES.update(dict.fromkeys(primitives, function))
        ENTRYWISE.update([function] if entrywise else ())
        return function

    return register


class Writer:
    """The text of a program, and what it asks of the program around it."""

    def __init__(self, groups: int = GROUPS) -> None:
        self.groups: int = groups
        self.head: list[str] = []
        self.lines: list[str] = []
        self.functions: dict[Any, str] = {}
        self.shared: list[Any] = []  # values of the program around that are passed in
        self.mask: str | None = None  # lanes for which what is written now counts; None for all
        self._on_stack = self._beside = 0  # bytes
        self._count = 0
        self._known = {}  # by the id of a value of the program around: its value here

    def name(self, start: str = "v", varies: bool = False) -> str:
        """A new name; the stroke tells it from the types, i64 for one."""
        self._count += 1
        return f"{start}_{self._count}" + ("@" if varies else "")

    def line(self, text: str) -> None:
        """A statement, for each group of lanes where it is about one."""
        groups = range(self.groups) if "@" in text else [0]
        self.lines.extend(text.replace("@", f"_{group}") for group in groups)

    def any(self, mask: str) -> str:
        """Whether any lane of a mask is on."""
        parts = [mask.replace("@", f"_{group}") for group in range(self.groups)]
        return f"any({' | '.join(parts)})"

    @contextlib.contextmanager
    def block(self, opening: str = "") -> Generator[None]:
        """Lines within braces."""
        self.line(opening + "{")
        yield
        self.line("}")

    @contextlib.contextmanager
    def under(self, mask: str | None) -> Generator[None]:
        """Lines that count for lanes of a mask alone."""
        before, self.mask = self.mask, mask
        yield
        self.mask = before

    def loops(
        self, shape: Sequence[int], body: Callable[[Index], object], unroll: int = UNROLL
    ) -> None:
        """`body(index)` for every index of a shape: written out if they are few."""
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

    def new(self, kind: Kind, varies: bool, reads: bool = False) -> Value:
        """An array; `reads` for one that will change, as the carry of a loop does."""
        name, size = self.name(varies=varies), max(1, kind.size)
        where = self._storage(size, varies)
        self.line(f"{where}{'v' if varies else ''}{kind.type} {name}[{size}];")
        array = in_array(name, kind, varies, reads={name: True} if reads else None)
        return array._replace(owned=True)

    def _storage(self, size, varies):
        """Where an array lies: what would fill the stack is beside it, each thread's own."""
        bytes = size * ENTRY[varies]
        total = bytes * (self.groups if varies else 1)
        if bytes > MOST_ON_STACK or self._on_stack + total > STACK:
            self._beside += total
            if self._beside > BESIDE:
                raise Unsupported(f"a program with more than {BESIDE >> 30} GiB of tables")
            return "static thread_local "
        self._on_stack += total
        return ""

    def store(self, array: Value, index: Index, text: str) -> None:
        """Put an expression into an entry."""
        self.line(f"{array.read(index)} = {text};")

    def fill(self, array: Value, value: Value, mask: str | None = None) -> Value:
        """Put a value into an array; with a mask, for its lanes alone."""

        def one(index):
            text = in_lanes(value.read(index), value, array.varies)
            if mask is not None:
                text = f"select_{value.kind.type}({mask}, {text}, {array.read(index)})"
            self.store(array, index, text)

        self.loops(value.shape, one, unroll=1 if value.heavy else UNROLL)
        return array

    def kept(self, value: Value) -> Value:
        """The value, for reading often: what costs something is computed now."""
        return value if value.cheap else self.fill(self.new(value.kind, value.varies), value)

    def array(self, value: Value) -> Value:
        """The value in an array of its own, whose entries can be addressed."""
        if value.array is not None:
            return value
        return self.fill(self.new(value.kind, value.varies), value)

    def scalar(self, type: str, text: str) -> str:
        """The name of a new variable."""
        name = self.name(varies=type[0] == "v")
        self.line(f"const {type} {name} = {text};")
        return name

    def outside(self, x: Any, kind: Kind) -> Value:
        """A value of the program around, passed in when it is first read."""
        if np.ndim(x) == 0 and isinstance(x, np.ndarray | np.generic | int | float | bool):
            return constant(x, kind)._replace(host=np.asarray(x))
        if id(x) in self._known:
            return self._known[id(x)]
        name = []

        def read(index):
            if not name:
                name.append(self._passed_in(x, kind))
            return f"{name[0]}[{flat(index, kind.shape)}]"

        value = Value(kind, False, read, host=x)
        self._known[id(x)] = value
        return value

    def _passed_in(self, x, kind):
        name, place = self.name("s"), f"in[inputs + {len(self.shared)}]"
        self.shared.append(x)
        if kind.type == "b64":
            size = max(1, kind.size)
            self.head.append(f"{self._storage(size, False)}b64 {name}[{size}];")
            mask = f"-(i64)(((const uint8_t *){place})[i] != 0)"
            self.head.append(f"for (i64 i = 0; i < {kind.size}; i++) {name}[i] = {mask};")
        else:
            self.head.append(f"const {kind.type} *const {name} = (const {kind.type} *){place};")
        return name

    def evaluate(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
        """The values of a jaxpr's results; equations of shared values run outside."""
        uses = Counter(x for eqn in jaxpr.eqns for x in eqn.invars if not is_literal(x))
        uses.update(x for x in jaxpr.outvars if not is_literal(x))
        values = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            values[var] = self.outside(const, kind_of(var.aval))
        for var, value in zip(jaxpr.invars, args, strict=True):
            values[var] = self.kept(value)._replace(owned=False) if uses[var] > 1 else value

        def read(atom):
            if is_literal(atom):
                return self.outside(np.asarray(atom.val, dtype_of(atom)), kind_of(atom.aval))
            return values[atom]

        for eqn in jaxpr.eqns:
            for var, value in zip(eqn.outvars, self._results(eqn, read), strict=True):
                small = value.kind.size == 1 and not value.cheap
                if uses[var] and (small or (uses[var] > 1 and not value.cheap)):
                    value = self._once(value)
                if uses[var] > 1:
                    value = value._replace(owned=False)
                values[var] = value
        return [read(atom) for atom in jaxpr.outvars]

    def _once(self, value):
        """A value that is not cheap, computed now."""
        if value.kind.size != 1:
            return self.kept(value)
        name = self.scalar(value.type, value.read((0,) * len(value.shape)))
        return value._replace(
            read=lambda index: name, cheap=True, array=None, reads={}, heavy=False
        )

    def _results(self, eqn, read):
        operands = [read(atom) for atom in eqn.invars]
        here = rule_for(eqn, RULES)
        given = [x.host for x in operands]
        # What is known now is left to the compiler of this program, where there is a rule.
        known = here is not None and all(isinstance(x, np.ndarray) for x in given)
        if given and all(x is not None for x in given) and not known:
            found = bind(eqn, [x.host for x in operands])
            pairs = zip(found, eqn.outvars, strict=True)
            return [self.outside(x, kind_of(var.aval)) for x, var in pairs]
        if here is None:
            raise Unsupported(f"the operation {eqn.primitive.name!r}")
        if here not in ENTRYWISE:
            operands = [self.kept(x) if x.heavy else x for x in operands]
        return here(eqn, operands, self)

    def call(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """The results of a function given as a closed jaxpr."""
        return self.evaluate(closed.jaxpr, closed.consts, args)


def scalar_kind(kind: Kind) -> Kind:
    """The kind of one entry."""
    return Kind((), kind.type)
