"""Rules for calls, branches and loops."""

from collections.abc import Callable, Sequence

from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive

from ...kernels.linalg.spd import SWEEP_COLUMNS, SWEEP_LARGEST
from ...kernels.selection import PICK_ARGMAX, PICK_BEST
from ...kernels.shared_call import ONCE_FOR_EQUAL
from ..jaxprs import (
    CUSTOM_CALLS,
    called_jaxpr,
    scan_parts,
    varying,
    varying_of_scan,
    varying_of_while,
    while_parts,
)
from .elementwise import entrywise
from .inverses import sweep_columns, sweep_largest
from .selection import pick_argmax, pick_best
from .values import ArraySpec, Unsupported, Value, constant, in_array, in_lanes, spec_of
from .writer import Writer, rule

# By primitive: the number of axes of the first operand, and what writes the function.
KERNELS: dict[Primitive, tuple[int, Callable[..., list[Value]]]] = {
    PICK_BEST: (1, pick_best),
    PICK_ARGMAX: (1, pick_argmax),
    SWEEP_COLUMNS: (2, sweep_columns),
    SWEEP_LARGEST: (2, sweep_largest),
}


@rule("jit", ONCE_FOR_EQUAL, entrywise=True)
def call(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A nested function is written in place, without a call."""
    return writer.call(eqn.params["jaxpr"], operands)


@rule(*KERNELS, entrywise=True)
def kernel(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Kernels with C++ of their own, unless under `vmap`, shared, or not in double precision."""
    rank, write = KERNELS[eqn.primitive]
    fits = operands[0].type == "vf64" and len(operands[0].shape) == rank
    return (write if fits else call)(eqn, operands, writer)


@rule(*CUSTOM_CALLS)
def custom_call(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The function is written in place, and its derivative ignored."""
    return writer.call(called_jaxpr(eqn.params), operands)


def _carry_arrays(writer, values, flags, owned):
    """Arrays for a loop's carry with its initial values; `owned` if no lane stops before others.

    An array that nothing else reads becomes the loop's own, so that nothing is copied.
    """
    arrays = []
    for value, varies in zip(values, flags, strict=True):
        if value.owned and value.array is not None and value.varies == varies:
            array = in_array(value.array, value.spec, varies, reads={value.array: True})
        else:
            array = writer.fill(writer.new(value.spec, varies, mutable=True), value)
        arrays.append(array._replace(owned=owned))
    return arrays


def _assign(writer, arrays, values, mask=None):
    """Assign new values to a loop's arrays: in place where no other value reads the old entries."""
    pairs = [(a, x) for a, x in zip(arrays, values, strict=True) if x.array != a.array]
    computed, in_place = [], []
    for array, value in pairs:
        others = [x for a, x in pairs if a.array != array.array]
        alone = all(name == array.array and same for name, same in value.reads.items())
        if alone and not any(array.array in x.reads for x in others):
            in_place.append((array, value))
        elif value.reads or not value.cheap:
            computed.append((array, writer.fill(writer.new(value.spec, value.varies), value)))
        else:
            computed.append((array, value))
    for array, value in [*in_place, *computed]:
        writer.fill(array, value, mask)


def _read_only(writer, values):
    """Values that a loop or a branch may read many times, computed before it."""
    return [writer.materialised(x)._replace(owned=False) for x in values]


def _finished(arrays, initial=()):
    """The arrays of a loop after its end; they no longer change, but for those of an outer loop.

    Args:
      initial: the values it began with, whose arrays may have become its own.
    """
    outer = {x.array for x in initial if x.array in x.reads}
    return [
        x._replace(reads={x.array: True} if x.array in outer else {}, owned=True) for x in arrays
    ]


@rule("scan")
def scan(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A loop whose number of steps is known."""
    p = eqn.params
    flags = varying_of_scan(p, [x.varies for x in operands])
    consts, initial, xs = scan_parts(p, operands)
    consts = _read_only(writer, consts)
    xs = _read_only(writer, xs)
    carry = _carry_arrays(writer, initial, flags[: len(initial)], True)
    y_specs = [spec_of(v.aval) for v in eqn.outvars[len(carry) :]]
    ys = [writer.new(k, f) for k, f in zip(y_specs, flags[len(carry) :], strict=True)]
    step, t = writer.name("i"), writer.name("i")
    with writer.block(f"for (i64 {step} = 0; {step} < {p['length']}; {step}++) "):
        writer.line(
            f"const i64 {t} = {p['length'] - 1} - {step};"
            if p["reverse"]
            else f"const i64 {t} = {step};"
        )
        results = writer.call(p["jaxpr"], [*consts, *carry, *(_row(x, t) for x in xs)])
        for y, value in zip(ys, results[len(carry) :], strict=True):

            def one(index, y=y, value=value):
                writer.store(y, (t, *index), in_lanes(value.read(index), value, y.varies))

            writer.loops(value.shape, one)
        _assign(writer, carry, results[: len(carry)])
    return [*_finished(carry, initial), *ys]


def _row(value, t):
    spec = ArraySpec(value.shape[1:], value.spec.type)
    reads = dict.fromkeys(value.reads, False)
    return Value(
        spec,
        value.varies,
        lambda index: value.read((t, *index)),
        cheap=value.cheap,
        reads=reads,
        heavy=value.heavy,
        range=value.range,
    )


def repeat(
    writer: Writer,
    closed: ClosedJaxpr,
    values: Sequence[Value],
    goes_on: ClosedJaxpr,
    most: int,
) -> list[Value]:
    """A step repeated up to `most` times, or until a lane for which `goes_on` held stops.

    Fewer times, or not at all, where the call has taken long; not at all where no lane goes on.

    Returns the carry and the sums over steps of the step's other results.
    """
    flags = [True] * len(values)
    carry = _carry_arrays(writer, values, flags, True)
    tallies = [spec_of(aval) for aval in closed.out_avals[len(values) :]]
    tallies = [writer.new(spec, True, mutable=True) for spec in tallies]
    for tally in tallies:
        writer.fill(tally, constant(0, tally.spec))

    def active():
        (flag,) = writer.call(goes_on, [x._replace(owned=False) for x in carry])
        return writer.scalar("vb64", in_lanes(flag.read(()), flag, True))

    step = writer.name("i")
    with writer.block(f"for (i64 {step} = 0; {step} < {most} && HAS_TIME(); {step}++) "):
        before = active()
        writer.line(f"if (!{writer.any(before)}) break;")
        results = writer.call(closed, carry)
        sums = zip(tallies, results[len(carry) :], strict=True)
        total = [
            entrywise(t.shape, t.spec.type, [t, x], lambda a, b: f"({a} + {b})") for t, x in sums
        ]
        _assign(writer, [*carry, *tallies], [*results[: len(carry)], *total])
        writer.line(f"if ({writer.any(f'{before} & ~{active()}')}) break;")
    return [*_finished(carry), *_finished(tallies)]


@rule("while")
def while_loop(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A loop until every lane is done; a lane that is done keeps its values."""
    p = eqn.params
    if p["cond_jaxpr"].out_avals[0].shape:
        raise Unsupported("a `while` loop under `vmap`")
    flags = varying_of_while(p, [x.varies for x in operands])
    cond_consts, body_consts, initial = while_parts(p, operands)
    cond_flags = [*(x.varies for x in cond_consts), *flags]
    (condition_varies,) = varying(p["cond_jaxpr"].jaxpr, cond_flags)
    cond_consts, body_consts = _read_only(writer, cond_consts), _read_only(writer, body_consts)
    carry = _carry_arrays(writer, initial, flags, not condition_varies)
    with writer.block("for (;;) "):
        read_only = [x._replace(owned=False) for x in carry]
        (active,) = writer.call(p["cond_jaxpr"], [*cond_consts, *read_only])
        text = active.read(())
        mask = None
        if active.varies:
            both = f"{text} & {writer.mask}" if writer.mask else text
            mask = writer.scalar("vb64", both)
            text = writer.any(mask)
        writer.line(f"if (!{text}) break;")
        with writer.under(mask or writer.mask):
            after = writer.call(p["body_jaxpr"], [*body_consts, *carry])
        _assign(writer, carry, after, mask)
    return _finished(carry, initial)


@rule("cond")
def cond(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Each branch is computed if some lane takes it; lanes then select among the results."""
    which, *args = operands
    branches = eqn.params["branches"]
    if which.number is not None:
        return writer.call(branches[max(0, min(which.number, len(branches) - 1))], args)
    args = _read_only(writer, args)
    specs = [spec_of(var.aval) for var in eqn.outvars]
    varies = which.varies or any(x.varies for x in args)
    arrays = [writer.new(spec, varies) for spec in specs]
    which = writer.scalar(which.type, which.read(())), which.varies, which.spec.type
    for k, branch in enumerate(branches):
        test = _taken(which, k, len(branches))
        mask = None
        if which[1]:
            mask = writer.scalar("vb64", f"{test} & {writer.mask}" if writer.mask else test)
            test = writer.any(mask)
        with writer.block(f"if ({test}) "), writer.under(mask or writer.mask):
            for array, value in zip(arrays, writer.call(branch, args), strict=True):
                writer.fill(array, value, mask)
    return arrays


def _taken(which, k, number):
    """Whether branch k is taken; an index out of range takes the first or the last branch."""
    name, varies, type = which
    if type == "b64":
        return f"(vi64)({name} == {-k})" if varies else f"{name} == {-k}"
    sign = "<=" if k == 0 else ">=" if k == number - 1 else "=="
    if not varies:
        return f"{name} {sign} {k}"
    return f"(vi64)({name} {sign} {k})" if type == "i64" else f"MASK32({name} {sign} {k})"


@rule("platform_index")
def platform_index(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """The branch for a CPU, the only device of these programs."""
    for k, names in enumerate(eqn.params["platforms"]):
        if names is None or "cpu" in names:
            return [constant(k, spec_of(eqn.outvars[0].aval))]
    raise AssertionError("no branch for a CPU")
