"""Calls, branches and loops."""

from collections.abc import Callable, Sequence

from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive

from ...kernels.linalg.spd import SWEEP_COLUMNS
from ...kernels.selection import PICK_ARGMAX, PICK_BEST
from ...kernels.shared_call import ONCE_FOR_EQUAL
from ..jaxprs import (
    called,
    scan_parts,
    varying,
    varying_of_scan,
    varying_of_while,
    while_parts,
)
from .elementwise import entrywise
from .inverses import sweep_columns
from .selection import pick_argmax, pick_best
from .values import Kind, Unsupported, Value, constant, in_lanes, kind_of
from .writer import Writer, rule

# The rank of the first operand, and how the function is written.
WRITTEN: dict[Primitive, tuple[int, Callable[..., list[Value]]]] = {
    PICK_BEST: (1, pick_best),
    PICK_ARGMAX: (1, pick_argmax),
    SWEEP_COLUMNS: (2, sweep_columns),
}


@rule("jit", ONCE_FOR_EQUAL, entrywise=True)
def call(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A nested function is written in place."""
    return writer.call(eqn.params["jaxpr"], operands)


@rule(*WRITTEN, entrywise=True)
def written(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Functions of one lane in their own way; mapped over, or of other numbers, in place."""
    rank, write = WRITTEN[eqn.primitive]
    own = operands[0].type == "vf64" and len(operands[0].shape) == rank
    return (write if own else call)(eqn, operands, writer)


@rule("custom_jvp_call", "custom_vjp_call", "closed_call")
def custom_call(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Derivatives do not matter here."""
    return writer.call(called(eqn.params), operands)


def _carried(writer, values, flags, owned):
    """Arrays of a loop, with the values they begin with; `owned` where no lane stops early."""
    arrays = []
    for value, varies in zip(values, flags, strict=True):
        array = writer.new(value.kind, varies, reads=True)
        arrays.append(writer.fill(array, value)._replace(owned=owned))
    return arrays


def _advance(writer, arrays, values, mask=None):
    """New values for the arrays of a loop, in place where nothing else reads what was there."""
    pairs = [(a, x) for a, x in zip(arrays, values, strict=True) if x.array != a.array]
    ready, waiting = [], []
    for array, value in pairs:
        others = [x for a, x in pairs if a.array != array.array]
        alone = all(name == array.array and same for name, same in value.reads.items())
        if alone and not any(array.array in x.reads for x in others):
            waiting.append((array, value))
        elif value.reads or not value.cheap:
            ready.append((array, writer.fill(writer.new(value.kind, value.varies), value)))
        else:
            ready.append((array, value))
    for array, value in [*waiting, *ready]:
        writer.fill(array, value, mask)


def _settled(writer, values):
    """What a loop or a branch may read again and again is computed before it."""
    return [writer.kept(x)._replace(owned=False) for x in values]


def _after(arrays):
    """The arrays of a loop that is over do not change any more."""
    return [x._replace(reads={}, owned=True) for x in arrays]


@rule("scan")
def scan(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """A loop of known length."""
    p = eqn.params
    flags = varying_of_scan(p, [x.varies for x in operands])
    consts, carry, xs = scan_parts(p, operands)
    consts = _settled(writer, consts)
    xs = _settled(writer, xs)
    carry = _carried(writer, carry, flags[: len(carry)], True)
    y_kinds = [kind_of(v.aval) for v in eqn.outvars[len(carry) :]]
    ys = [writer.new(k, f) for k, f in zip(y_kinds, flags[len(carry) :], strict=True)]
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
        _advance(writer, carry, results[: len(carry)])
    return [*_after(carry), *ys]


def _row(value, t):
    kind = Kind(value.shape[1:], value.kind.type)
    reads = dict.fromkeys(value.reads, False)
    return value._replace(
        kind=kind, read=lambda index: value.read((t, *index)), array=None, host=None, reads=reads
    )


def again(
    writer: Writer,
    closed: ClosedJaxpr,
    values: Sequence[Value],
    goes_on: ClosedJaxpr,
    most: int,
) -> list[Value]:
    """A step repeated while all lanes that were to go on are; results beyond the carry add up."""
    flags = [True] * len(values)
    carry = _carried(writer, values, flags, True)
    tallies = [kind_of(aval) for aval in closed.out_avals[len(values) :]]
    tallies = [writer.new(kind, True, reads=True) for kind in tallies]
    for tally in tallies:
        writer.fill(tally, constant(0, tally.kind))

    def going():
        (text,) = writer.call(goes_on, [x._replace(owned=False) for x in carry])
        return writer.scalar("vb64", in_lanes(text.read(()), text, True))

    step = writer.name("i")
    with writer.block(f"for (i64 {step} = 0; {step} < {most}; {step}++) "):
        before = going()
        results = writer.call(closed, carry)
        sums = zip(tallies, results[len(carry) :], strict=True)
        total = [
            entrywise(t.shape, t.kind.type, [t, x], lambda a, b: f"({a} + {b})") for t, x in sums
        ]
        _advance(writer, [*carry, *tallies], [*results[: len(carry)], *total])
        writer.line(f"if ({writer.any(f'{before} & ~{going()}')}) break;")
    return [*_after(carry), *_after(tallies)]


@rule("while")
def while_loop(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Until every lane is done; a lane that is keeps its values."""
    p = eqn.params
    if p["cond_jaxpr"].out_avals[0].shape:
        raise Unsupported("a loop that was mapped over")
    flags = varying_of_while(p, [x.varies for x in operands])
    cond_consts, body_consts, initial = while_parts(p, operands)
    (stops,) = varying(p["cond_jaxpr"].jaxpr, [*(x.varies for x in cond_consts), *flags])
    cond_consts, body_consts = _settled(writer, cond_consts), _settled(writer, body_consts)
    carry = _carried(writer, initial, flags, not stops)
    with writer.block("for (;;) "):
        read_only = [x._replace(owned=False) for x in carry]
        (going,) = writer.call(p["cond_jaxpr"], [*cond_consts, *read_only])
        text = going.read(())
        mask = None
        if going.varies:
            both = f"{text} & {writer.mask}" if writer.mask else text
            mask = writer.scalar("vb64", both)
            text = writer.any(mask)
        writer.line(f"if (!{text}) break;")
        with writer.under(mask or writer.mask):
            after = writer.call(p["body_jaxpr"], [*body_consts, *carry])
        _advance(writer, carry, after, mask)
    return _after(carry)


@rule("cond")
def cond(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """Each branch that some lane takes, and the lanes' choice between results."""
    which, *args = operands
    branches = eqn.params["branches"]
    if which.number is not None:
        return writer.call(branches[max(0, min(which.number, len(branches) - 1))], args)
    args = _settled(writer, args)
    kinds = [kind_of(var.aval) for var in eqn.outvars]
    varies = which.varies or any(x.varies for x in args)
    arrays = [writer.new(kind, varies) for kind in kinds]
    which = writer.scalar(which.type, which.read(())), which.varies, which.kind.type
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
    """Whether branch k is taken; what is beyond either end takes the last at that end."""
    name, varies, type = which
    if type == "b64":
        return f"(vi64)({name} == {-k})" if varies else f"{name} == {-k}"
    sign = "<=" if k == 0 else ">=" if k == number - 1 else "=="
    if not varies:
        return f"{name} {sign} {k}"
    return f"(vi64)({name} {sign} {k})" if type == "i64" else f"ASK32({name} {sign} {k})"


@rule("platform_index")
def platform_index(eqn: JaxprEqn, operands: Sequence[Value], writer: Writer) -> list[Value]:
    """These programs are for a CPU."""
    for k, names in enumerate(eqn.params["platforms"]):
        if names is None or "cpu" in names:
            return [constant(k, kind_of(eqn.outvars[0].aval))]
    raise AssertionError("no branch for a CPU")
