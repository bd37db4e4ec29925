"""Entry by entry: arithmetic, comparisons, choices, conversions."""

from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from ..lanewise import logarithms
from .values import Kind, Unsupported, Value, constant, in_lanes, kind_of
from .writer import Writer, rule

SIGNS: dict[str, str] = {
    "add": "+",
    "add_any": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
}
ORDERS: dict[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS: str = """
    max min pow atan2 abs sign sqrt square is_finite floor ceil exp exp2 expm1 log log1p logistic
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma cbrt
"""
LIGHT: set[str] = {"max", "min", "abs", "sqrt", "square", "is_finite"}
SHIFTS: dict[str, tuple[str, str]] = {
    "shift_left": ("u", "<<"),
    "shift_right_logical": ("u", ">>"),
    "shift_right_arithmetic": ("i", ">>"),
}
MANY: int = 4  # quotients by the same number that cost more than one quotient and their products
WRITTEN_OUT: dict[str, Callable] = {
    name: getattr(logarithms, name) for name in ("log", "log1p", "erf_inv")
}


def entrywise(
    shape: tuple[int, ...], type: str, operands: Sequence[Value], write: Callable[..., str]
) -> Value:
    """The value whose entries are `write(*expressions)`; scalars serve every entry."""
    varies = any(x.varies for x in operands)

    def read(index):
        def entry(x):
            if len(x.shape) == len(shape):  # an axis of length one serves all
                own = tuple(i if n > 1 else 0 for i, n in zip(index, x.shape, strict=True))
            else:
                own = (0,) * len(x.shape)
            return in_lanes(x.read(own), x, varies)

        return write(*map(entry, operands))

    reads = {}
    for x in operands:
        for name, same in x.reads.items():
            reads[name] = reads.get(name, True) and same and x.shape == shape
    heavy = any(x.heavy for x in operands)
    return Value(Kind(shape, type), varies, read, cheap=False, reads=reads, heavy=heavy)


def as_type(value: Value, type: str) -> Value:
    """Numbers as numbers of another type."""
    if value.kind.type == type:
        return value
    minus = "-" if value.kind.type == "b64" else ""  # a mask that is on is -1
    if value.varies:
        return entrywise(
            value.shape, type, [value], lambda a: f"__builtin_convertvector({minus}{a}, v{type})"
        )
    return entrywise(value.shape, type, [value], lambda a: f"(({type})({minus}{a}))")


def as_flags(value: Value) -> Value:
    """Whether numbers are not zero."""
    if value.varies:
        ask = "ASK64" if value.kind.type.endswith("64") else "ASK32"
        return entrywise(value.shape, "b64", [value], lambda a: f"((vi64){ask}({a} != 0))")
    return entrywise(value.shape, "b64", [value], lambda a: f"(-(i64)({a} != 0))")


def _plain(eqn, operands, write):
    kind = kind_of(eqn.outvars[0].aval)
    return [entrywise(kind.shape, kind.type, operands, write)]


def _call(name, operands, more=""):
    type, varies = operands[0].kind.type, any(x.varies for x in operands)
    function = f"{name}_{type}" + ("" if varies else "_s")
    return lambda *xs: f"{function}({', '.join(xs)}{more})"


@rule(*SIGNS, entrywise=True)
def signs(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Two operands and a sign between."""
    sign = SIGNS[eqn.primitive.name]
    return _plain(eqn, operands, lambda a, b: f"({a} {sign} {b})")


@rule(*ORDERS, entrywise=True)
def orders(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Comparisons give masks."""
    sign, type = ORDERS[eqn.primitive.name], operands[0].kind.type
    left, right = (x.range for x in operands)
    if sign == "<" and left and right and left[0] >= right[1]:  # an index is not below 0
        return [constant(0, kind_of(eqn.outvars[0].aval))._replace(number=0)]
    varies = any(x.varies for x in operands)
    if type == "b64":  # a mask that is on is -1
        operands = operands[::-1]
    if not varies:
        return _plain(eqn, operands, lambda a, b: f"(-(i64)({a} {sign} {b}))")
    if type.endswith("64"):
        return _plain(eqn, operands, lambda a, b: f"((vi64)({a} {sign} {b}))")
    return _plain(eqn, operands, lambda a, b: f"ASK32({a} {sign} {b})")


@rule(*FUNCTIONS.split(), entrywise=True)
def functions(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """What the header has a function for."""
    name, varies = eqn.primitive.name, any(x.varies for x in operands)
    if name in WRITTEN_OUT and varies and operands[0].kind.type == "f64":
        return written_out(eqn, operands, writer)
    if operands[0].kind.type == "b64" and name in ("max", "min"):
        sign = "|" if name == "max" else "&"
        return _plain(eqn, operands, lambda a, b: f"({a} {sign} {b})")
    if name == "pow":
        operands = [operands[0], as_type(operands[1], operands[0].kind.type)]
    return [
        x._replace(heavy=name not in LIGHT) for x in _plain(eqn, operands, _call(name, operands))
    ]


@rule("erf_inv", entrywise=True)
def written_out(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Functions of a double that this package has in plain operations."""
    name = eqn.primitive.name
    if operands[0].kind.type != "f64":
        raise Unsupported(f"{name} of {operands[0].kind.type}")
    if name not in writer.functions:
        writer.functions[name] = ""  # reserved, should it call itself
        inner, aval = Writer(groups=1), jax.ShapeDtypeStruct((), np.float64)
        closed = jax.make_jaxpr(WRITTEN_OUT[name])(aval)
        kind = Kind((), "f64")
        x = Value(kind, True, lambda index: "x")
        (found,) = inner.call(closed, [x])
        inner.line(f"return {in_lanes(found.read(()), found, True)};")
        body = "\n".join(inner.lines)
        writer.functions[name] = f"INLINE vf64 {name}_of(vf64 x) {{\n{body}\n}}"
    (x,) = operands
    if x.varies:
        (found,) = _plain(eqn, operands, lambda a: f"{name}_of({a})")
        return [found._replace(heavy=True)]
    return _plain(eqn, operands, lambda a: f"({name}_of(all_f64({a}))[0])")


@rule("div", entrywise=True)
def div(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Whole numbers are divided without a trap; a table by one number is multiplied."""
    if operands[0].kind.type[0] == "f":
        many, one = kind_of(eqn.outvars[0].aval).size, operands[1]
        if one.kind.size == 1 and many >= MANY:
            text = f"({one.type[-3:]})1 / {one.read((0,) * len(one.shape))}"
            name = writer.scalar(one.type, text)
            inverse = Value(Kind((), one.kind.type), one.varies, lambda index: name)
            return _plain(eqn, [operands[0], inverse], lambda a, b: f"({a} * {b})")
        return _plain(eqn, operands, lambda a, b: f"({a} / {b})")
    return _plain(eqn, operands, _call("div", operands))


@rule("rem", entrywise=True)
def rem(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The sign is that of the dividend."""
    return _plain(eqn, operands, _call("rem", operands))


@rule("neg", entrywise=True)
def neg(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Minus."""
    return _plain(eqn, operands, lambda a: f"(-{a})")


@rule("not", entrywise=True)
def not_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Bit by bit, hence right for masks too."""
    return _plain(eqn, operands, lambda a: f"(~{a})")


@rule("integer_pow", entrywise=True)
def integer_pow(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A few multiplications."""
    power = eqn.params["y"]
    if power == 2:
        return _plain(eqn, operands, _call("square", operands))
    if power == 0:
        return [constant(1, kind_of(eqn.outvars[0].aval))]
    raised = _call("power", operands, f", {abs(power)}")
    if power > 0:
        return _plain(eqn, operands, raised)
    return _plain(eqn, operands, lambda a: f"(1 / {raised(a)})")


@rule("rsqrt", entrywise=True)
def rsqrt(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """One over the root."""
    root = _call("sqrt", operands)
    return _plain(eqn, operands, lambda a: f"(1 / {root(a)})")


@rule("round", entrywise=True)
def round_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """To the nearest, ties as asked."""
    even = int(eqn.params["rounding_method"]) == 1
    return _plain(eqn, operands, _call("rint" if even else "round", operands))


@rule("reduce_precision", entrywise=True)
def reduce_precision(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Fewer bits."""
    p = eqn.params
    bits = f", {p['exponent_bits']}, {p['mantissa_bits']}"
    return _plain(eqn, operands, _call("coarse", operands, bits))


@rule("select_n", entrywise=True)
def select_n(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A flag or a number says which case."""
    which, *cases = operands
    kind, varies = kind_of(eqn.outvars[0].aval), any(x.varies for x in operands)
    function = f"select_{kind.type}" + ("" if varies else "_s")
    if which.number is not None and cases[abs(which.number)].shape == kind.shape:
        return [cases[abs(which.number)]]
    if which.kind.type == "b64":
        found = _plain(eqn, operands, lambda m, no, yes: f"{function}({m}, {yes}, {no})")
        if all(x.range for x in cases):
            ends = list(zip(*(x.range for x in cases), strict=True))
            found = [found[0]._replace(range=(min(ends[0]), max(ends[1])))]
        return found
    which = writer.kept(which)

    def choose(m, *cases):
        text = cases[-1]
        for k in range(len(cases) - 2, -1, -1):
            equal = f"({m} == {k})"
            mask = f"(-(i64){equal})" if not varies else f"__builtin_convertvector({equal}, vi64)"
            text = f"{function}({mask}, {cases[k]}, {text})"
        return text

    return [entrywise(kind.shape, kind.type, [which, *cases], choose)]


@rule("clamp", entrywise=True)
def clamp(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Between two bounds."""
    low, x, high = operands
    more, less = _call("max", operands), _call("min", operands)
    return _plain(eqn, [low, x, high], lambda a, x, b: less(more(x, a), b))


@rule("convert_element_type", entrywise=True)
def convert(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Flags are 0 and 1 as numbers."""
    (x,), target = operands, kind_of(eqn.outvars[0].aval).type
    if x.kind.type == target:
        return [x]
    found = as_flags(x) if target == "b64" else as_type(x, target)
    number = x.number if target != "b64" else None
    held = x.range if target in ("i64", "i32") else None
    if held and not (held[0] >= -(2**31) and held[1] < 2**31):
        held = number = None
    return [found._replace(number=number, range=held)]


@rule("bitcast_convert_type", entrywise=True)
def bitcast(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The same bits."""
    (x,), kind = operands, kind_of(eqn.outvars[0].aval)
    if x.kind.type[1:] != kind.type[1:]:
        raise Unsupported("bits of another width")
    if x.varies:
        return _plain(eqn, operands, lambda a: f"((v{kind.type}){a})")
    source, target = x.kind.type, kind.type
    union = f"union {{ {source} a; {target} b; }}"
    return _plain(eqn, operands, lambda a: f"((({union}){{{a}}}).b)")


@rule(*SHIFTS, entrywise=True)
def shifts(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """By less than the width."""
    sort, sign = SHIFTS[eqn.primitive.name]
    type, varies = operands[0].kind.type, any(x.varies for x in operands)
    v = "v" if varies else ""
    as_type = f"{v}{sort}{type[1:]}"
    return _plain(
        eqn, operands, lambda a, b: f"(({v}{type})(({as_type}){a} {sign} ({as_type}){b}))"
    )


@rule("copy", "stop_gradient", "reshard", "pvary", entrywise=True)
def same(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The same numbers."""
    return list(operands)


@rule("optimization_barrier")
def barrier(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """What stands before a barrier is computed once, not again in each use."""
    return [writer.kept(x) for x in operands]
