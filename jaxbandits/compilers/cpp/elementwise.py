"""Rules for operations entry by entry: arithmetic, comparisons, selections, conversions."""

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate

import jax
import numpy as np
from jax.extend.core import JaxprEqn

from .. import logarithms
from .layout import view
from .values import (
    ArraySpec,
    Unsupported,
    Value,
    constant,
    in_lanes,
    known_entry,
    spec_of,
    words_of,
)
from .writer import Writer, rule

OPERATORS: dict[str, str] = {
    "add": "+",
    "add_any": "+",
    "sub": "-",
    "mul": "*",
    "and": "&",
    "or": "|",
    "xor": "^",
}
COMPARISONS: dict[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS: str = """
    max min pow atan2 abs sign sqrt square is_finite floor ceil exp exp2 expm1 log log1p logistic
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma cbrt
"""
CHEAP: set[str] = {"max", "min", "abs", "sqrt", "square", "is_finite"}
FLOATS: set[str] = {"f64", "f32"}
SHIFTS: dict[str, tuple[str, str]] = {
    "shift_left": ("u", "<<"),
    "shift_right_logical": ("u", ">>"),
    "shift_right_arithmetic": ("i", ">>"),
}
# From so many quotients by the same number on, products with its inverse are faster.
MANY_QUOTIENTS: int = 4


def entrywise(
    shape: tuple[int, ...], type: str, operands: Sequence[Value], write: Callable[..., str]
) -> Value:
    """The value whose entries are `write(*expressions of the operands' entries)`.

    Scalars and axes of length one are broadcast.
    """
    varies = any(x.varies for x in operands)

    def read(index):
        def entry(x):
            if len(x.shape) == len(shape):  # an axis of length one is broadcast
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
    return Value(ArraySpec(shape, type), varies, read, cheap=False, reads=reads, heavy=heavy)


def as_type(value: Value, type: str) -> Value:
    """Numbers or flags converted to another type of numbers."""
    if value.spec.type == type:
        return value
    if value.spec.type in FLOATS and type not in FLOATS:
        function = f"whole_{value.spec.type}_{type}" + ("" if value.varies else "_s")
        return entrywise(value.shape, type, [value], lambda a: f"{function}({a})")
    if value.spec.type != "b64":
        number = "{}".format
    elif value.varies and type.endswith("32"):
        number = lambda a: f"-{_as_compared(a)}"  # noqa: E731
    else:
        number = "-{}".format  # a mask that is on is -1
    if value.varies:
        return entrywise(value.shape, type, [value], lambda a: f"CONVERT({number(a)}, v{type})")
    return entrywise(value.shape, type, [value], lambda a: f"(({type})({number(a)}))")


def _as_compared(mask):
    """A mask without the `MASK32` that widens it, where it is one comparison of 32-bit numbers."""
    inner = mask.removeprefix("MASK32")
    open_brackets = list(accumulate((x == "(") - (x == ")") for x in inner))
    return f"((vi32){inner})" if inner != mask and all(open_brackets[:-1]) else mask


def as_flags(value: Value) -> Value:
    """For each number whether it is not zero."""
    if value.varies:
        mask = "MASK64" if value.spec.type.endswith("64") else "MASK32"
        return entrywise(value.shape, "b64", [value], lambda a: f"((vi64){mask}({a} != 0))")
    return entrywise(value.shape, "b64", [value], lambda a: f"(-(i64)({a} != 0))")


def _entrywise_result(eqn, operands, write):
    spec = spec_of(eqn.outvars[0].aval)
    return [entrywise(spec.shape, spec.type, operands, write)]


def _function(name, operands, constants=""):
    """Writes a call of the function of lanes.h for these operands."""
    type, varies = operands[0].spec.type, any(x.varies for x in operands)
    function = f"{name}_{type}" + ("" if varies else "_s")
    return lambda *xs: f"{function}({', '.join(xs)}{constants})"


@rule(*OPERATORS, entrywise=True)
def operators(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """C++ operators with two operands."""
    operator = OPERATORS[eqn.primitive.name]
    return _entrywise_result(eqn, operands, lambda a, b: f"({a} {operator} {b})")


@rule(*COMPARISONS, entrywise=True)
def comparisons(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Comparisons, whose results are masks."""
    sign, type = COMPARISONS[eqn.primitive.name], operands[0].spec.type
    left, right = (x.range for x in operands)
    if (
        sign == "<" and left and right and left[0] >= right[1]
    ):  # an index is known not to be negative
        return [constant(0, spec_of(eqn.outvars[0].aval))]
    varies = any(x.varies for x in operands)
    if type == "b64":  # a mask that is on is -1
        operands = operands[::-1]
    if not varies:
        return _entrywise_result(eqn, operands, lambda a, b: f"(-(i64)({a} {sign} {b}))")
    if type.endswith("64"):
        return _entrywise_result(eqn, operands, lambda a, b: f"((vi64)({a} {sign} {b}))")
    return _entrywise_result(eqn, operands, lambda a, b: f"MASK32({a} {sign} {b})")


@rule(*FUNCTIONS.split(), entrywise=True)
def functions(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Functions that the header lanes.h defines."""
    name, varies = eqn.primitive.name, any(x.varies for x in operands)
    if name in logarithms.FUNCTIONS and varies and operands[0].spec.type == "f64":
        return logarithm(eqn, operands, writer)
    if operands[0].spec.type == "b64" and name in ("max", "min"):
        sign = "|" if name == "max" else "&"
        return _entrywise_result(eqn, operands, lambda a, b: f"({a} {sign} {b})")
    if name == "pow":
        operands = [operands[0], as_type(operands[1], operands[0].spec.type)]
    return [
        x._replace(heavy=name not in CHEAP)
        for x in _entrywise_result(eqn, operands, _function(name, operands))
    ]


@rule("erf_inv", entrywise=True)
def logarithm(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Functions that `compilers.logarithms` has for doubles; single precision is converted."""
    name, x = eqn.primitive.name, as_type(operands[0], "f64")
    if name == "erf_inv":
        # The machine needs only a part of it for most numbers.
        writer.functions["far"] = _of_numbers("RARE", "far", logarithms.erf_inv)
        function = logarithms.erf_inv_near_0
        result = "any(~{1}) ? select_f64({1}, {0}, far_of(x@)) : {0}"
    else:
        function, result = logarithms.FUNCTIONS[name], "{0}"
    writer.functions[name] = _of_numbers("INLINE", name, function, result)
    call = f"{name}_of({{}})" if x.varies else f"({name}_of(all_f64({{}}))[0])"
    if name == "erf_inv" and x.varies and writer.in_pairs(x.spec):
        writer.functions[f"{name}, two"] = _of_numbers("INLINE", name, function, result, 2)
        found = writer.fill(writer.new(x.spec, True), x)
        one = f"*{{to}} = {name}_of(*{{to}});"
        writer.pairs(found, f"{name}_of_two({{to}});", one)
    else:
        found = entrywise(x.shape, "f64", [x], call.format)._replace(heavy=x.varies)
    return [as_type(found, operands[0].spec.type)]


@functools.cache
def _of_numbers(kind, name, function, result="{0}", number=1):
    """A C++ function of one number; or of two, of which neither waits for the other.

    Args:
      kind, name: of the C++ function.
      function: in JAX.
      result: a C++ expression, where `{0}`, `{1}` are what `function` returns and `x@` is its
        argument.
      number: 2 for a function that replaces two numbers in memory.
    """
    inner, aval = Writer(groups=number), jax.ShapeDtypeStruct((), np.float64)
    closed = jax.make_jaxpr(function)(aval)
    found = inner.call(closed, [Value(ArraySpec((), "f64"), True, lambda index: "x@")])
    result = result.format(*(in_lanes(y.read(()), y, True) for y in found))
    if number == 1:
        inner.line(f"return {result};")
        head = f"{kind} vf64 {name}_of(vf64 x_0) {{"
    else:
        inner.line(f"*to@ = {result};")
        head = f"{kind} void {name}_of_two(vf64 *to_0) {{"
        head += "\nvf64 *const to_1 = to_0 + 1;\nconst vf64 x_0 = *to_0, x_1 = *to_1;"
    return "\n".join([head, *inner.lines, "}"])


@rule("div", entrywise=True)
def div(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Division; integers without a trap, tables by one number as a product with its inverse."""
    if operands[0].spec.type[0] == "f":
        number, divisor = spec_of(eqn.outvars[0].aval).size, operands[1]
        if divisor.spec.size == 1 and number >= MANY_QUOTIENTS:
            text = f"({divisor.type[-3:]})1 / {divisor.read((0,) * len(divisor.shape))}"
            name = writer.scalar(divisor.type, text)
            inverse = Value(ArraySpec((), divisor.spec.type), divisor.varies, lambda index: name)
            return _entrywise_result(eqn, [operands[0], inverse], lambda a, b: f"({a} * {b})")
        return _entrywise_result(eqn, operands, lambda a, b: f"({a} / {b})")
    return _entrywise_result(eqn, operands, _function("div", operands))


@rule("rem", entrywise=True)
def rem(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The remainder, with the sign of the dividend."""
    return _entrywise_result(eqn, operands, _function("rem", operands))


@rule("neg", entrywise=True)
def neg(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The negative."""
    return _entrywise_result(eqn, operands, lambda a: f"(-{a})")


@rule("not", entrywise=True)
def not_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The complement bit by bit, which is right for masks too."""
    return _entrywise_result(eqn, operands, lambda a: f"(~{a})")


@rule("integer_pow", entrywise=True)
def integer_pow(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A constant power, by multiplications."""
    power = eqn.params["y"]
    if power == 2:
        return _entrywise_result(eqn, operands, _function("square", operands))
    if power == 0:
        return [constant(1, spec_of(eqn.outvars[0].aval))]
    raised = _function("power", operands, f", {abs(power)}")
    if power > 0:
        return _entrywise_result(eqn, operands, raised)
    return _entrywise_result(eqn, operands, lambda a: f"(1 / {raised(a)})")


@rule("rsqrt", entrywise=True)
def rsqrt(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """One over the square root."""
    root = _function("sqrt", operands)
    return _entrywise_result(eqn, operands, lambda a: f"(1 / {root(a)})")


@rule("round", entrywise=True)
def round_(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Rounding to the nearest integer; a parameter says how ties are rounded."""
    even = int(eqn.params["rounding_method"]) == 1
    return _entrywise_result(eqn, operands, _function("rint" if even else "round", operands))


@rule("reduce_precision", entrywise=True)
def reduce_precision(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Rounding to fewer bits."""
    p = eqn.params
    bits = f", {p['exponent_bits']}, {p['mantissa_bits']}"
    return _entrywise_result(eqn, operands, _function("reduce_precision", operands, bits))


@rule("select_n", entrywise=True)
def select_n(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The case that a flag or an index selects."""
    which, *cases = operands
    spec, varies = spec_of(eqn.outvars[0].aval), any(x.varies for x in operands)
    if words_of(eqn.outvars[0].aval) and which.shape:
        which = _for_both_words(which)
    function = f"select_{spec.type}" + ("" if varies else "_s")
    if which.number is not None and cases[abs(which.number)].shape == spec.shape:
        return [cases[abs(which.number)]]
    if which.spec.type == "b64":
        operands = [which, *cases]
        found = _entrywise_result(eqn, operands, lambda m, no, yes: f"{function}({m}, {yes}, {no})")
        if all(x.range for x in cases):
            ends = list(zip(*(x.range for x in cases), strict=True))
            found = [found[0]._replace(range=(min(ends[0]), max(ends[1])))]
        return [_selected(found[0], which, cases)]
    which = writer.materialised(which)

    def select(m, *cases):
        text = cases[-1]
        for k in range(len(cases) - 2, -1, -1):
            equal = f"({m} == {k})"
            mask = f"(-(i64){equal})" if not varies else f"CONVERT({equal}, vi64)"
            text = f"{function}({mask}, {cases[k]}, {text})"
        return text

    return [entrywise(spec.shape, spec.type, [which, *cases], select)]


def _for_both_words(which):
    """What selects keys, for each of their two words."""
    known = which.known
    if known is not None:
        known = np.broadcast_to(known[..., None], (*known.shape, 2))
    words = view(which, (*which.shape, 2), lambda index: index[:-1])
    return words._replace(known=known)


def _selected(found, which, cases):
    """What flags select, without the flags where an entry's own is known."""

    def read(index):
        flag = known_entry(which.known, index if which.shape else ())
        if flag is None:
            return found.read(index)
        return in_lanes(cases[int(flag)].read(index), cases[int(flag)], found.varies)

    return found._replace(read=read)


@rule("clamp", entrywise=True)
def clamp(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A number clipped to two bounds."""
    low, x, high = operands
    larger, smaller = _function("max", operands), _function("min", operands)
    return _entrywise_result(eqn, [low, x, high], lambda a, x, b: smaller(larger(x, a), b))


@rule("convert_element_type", entrywise=True)
def convert(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Conversion to another type; flags become 0 and 1."""
    (x,), target = operands, spec_of(eqn.outvars[0].aval).type
    if x.spec.type == target:
        return [x]
    found = as_flags(x) if target == "b64" else as_type(x, target)
    bounds = x.range if target in ("i64", "i32") else None
    if bounds and not (bounds[0] >= -(2**31) and bounds[1] < 2**31):
        bounds = None
    return [found._replace(range=bounds)]


@rule("bitcast_convert_type", entrywise=True)
def bitcast(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The same bits as another type of the same width."""
    (x,), spec = operands, spec_of(eqn.outvars[0].aval)
    if x.spec.type[1:] != spec.type[1:]:
        raise Unsupported("'bitcast_convert_type' to another width")
    if x.varies:
        return _entrywise_result(eqn, operands, lambda a: f"((v{spec.type}){a})")
    return _entrywise_result(eqn, operands, lambda a: f"bits_as<{spec.type}>({a})")


@rule(*SHIFTS, entrywise=True)
def shifts(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Shifts by less than the width."""
    signedness, operator = SHIFTS[eqn.primitive.name]
    type, varies = operands[0].spec.type, any(x.varies for x in operands)
    v = "v" if varies else ""
    as_type = f"{v}{signedness}{type[1:]}"
    return _entrywise_result(
        eqn, operands, lambda a, b: f"(({v}{type})(({as_type}){a} {operator} ({as_type}){b}))"
    )


@rule("copy", "stop_gradient", "reshard", "pvary", entrywise=True)
def same(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Operations that change no number."""
    return list(operands)


@rule("optimization_barrier")
def barrier(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """What goes through a barrier is computed once, not again in each use."""
    return [writer.materialised(x) for x in operands]
