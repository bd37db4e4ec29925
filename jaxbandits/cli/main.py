"""The command line. Heavy modules are imported by the command that needs them."""

import codecs
import contextlib
import functools
import io
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeGuard, TypeVar

import click

from ..messages import brief
from ..system import interrupts

if TYPE_CHECKING:
    import xarray

    from ..reproduce import Result
    from ..system.plugins import PluginFile

P = ParamSpec("P")
R = TypeVar("R")

BAD_INPUT, INTERRUPTED = 2, 130
REPLACING = "jaxbandits.ascii"  # how characters are printed that an encoding does not have
PRINTING = ("click.", "rich.", __name__)  # modules that print
PRINTED = {"±": "+-", "≥": ">=", "–": "-", "…": "..."}
DEMO_FOLDER = Path("demo-results")
SHELLS = ("bash", "zsh", "fish")


class _Named(click.Path):
    """A path that is not empty: an unset variable of a shell does not name the working folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not value:
            self.fail("it is empty, and must be the name of a file or folder", param, ctx)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


PATH = _Named()


def one_line(command: Callable[P, R]) -> Callable[P, R]:
    """Bad input ends with status 2 and one line on standard error, never a traceback."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with interrupts.interruptible() as signals:
            try:
                with plain_warnings():
                    result = command(*args, **kwargs)
                sys.stdout.flush()
                interrupts.raise_if_lost()
                interrupts.work_is_done()
                return result
            except BrokenPipeError:  # what read the output has ended, `head` say
                _discard_output()
                sys.exit(1)
            except (ValueError, OSError) as error:
                if _is_of_printing(error):
                    _discard_output()
                    error = ValueError(
                        f"the output cannot be printed: {os.strerror(error.errno or 0)}"
                    )
                click.echo("error: " + " ".join(_reason(error).split()), err=True)
                sys.exit(BAD_INPUT)
            except Exception as error:
                from ..system.user_errors import told

                text = told(error)
                if text is None:
                    raise
                click.echo(f"error: {text}", err=True)
                sys.exit(BAD_INPUT)
            except KeyboardInterrupt:
                interrupts.further_ones_ignored()
                click.echo(signals.text, err=True)
                signals.leave()

    return wrapped


def _is_of_printing(error: Exception) -> TypeGuard[OSError]:
    """Whether an error says that the output cannot be written, on a full disk say."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__"))
    return isinstance(error, OSError) and not error.filename and module.startswith(PRINTING)


def _discard_output() -> None:
    """Send what is left of the output to nowhere, as Python writes it in the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What is printed for characters that the encoding of the output does not have."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(PRINTED.get(x, ascii(x)[1:-1]) for x in text), error.end


def _every_text_printable() -> None:
    """Let the output take texts with any characters, whatever its encoding is."""
    codecs.register_error(REPLACING, _in_ascii)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=REPLACING)


@contextlib.contextmanager
def _in_file(path: Path) -> Generator[None]:
    """A block whose errors about tables of a sweep name the file with these tables."""
    from ..sweeps.cells import TableError

    try:
        yield
    except TableError as error:
        raise ValueError(f"{path}: {error}") from error.__cause__


def _check_drawing() -> None:
    """Raise where figures cannot be drawn, before anything is played for them."""
    try:
        import matplotlib  # noqa: F401
    except ValueError as error:  # it checks the variable when it is imported
        named = os.environ.get("MPLBACKEND")
        if named is None:
            raise
        raise ValueError(
            f"MPLBACKEND must name a backend of Matplotlib, got {brief(named)}; unset it"
        ) from error


def _reason(error: Exception) -> str:
    """What went wrong, with the file that was read or written."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextlib.contextmanager
def plain_warnings() -> Generator[None]:
    """Warnings as one line each, without the source line that raised them."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        click.echo(f"warning: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show  # ty: ignore[invalid-assignment]  # Python documents replacing it
        yield


def _usage(error: click.ClickException) -> str:
    """How the command is called, where something that it needs is missing."""
    context = error.ctx if isinstance(error, click.MissingParameter) else None
    if context is None:
        return ""
    words = [context.command_path]
    for one in context.command.get_params(context):
        if isinstance(one, click.Argument):
            words.append(one.human_readable_name)
        elif one.required:
            words += [one.opts[0], one.metavar or one.human_readable_name.upper()]
    return f" Give: {' '.join(words)}"


class OneLine(click.Group):
    """A group whose usage errors are one line too."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run; see `click.Command.main`."""
        _every_text_printable()
        try:
            return super().main(*args, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(BAD_INPUT)
        except click.ClickException as error:
            text = " ".join(error.format_message().split())
            click.echo(f"error: {text}{_usage(error)}", err=True)
            sys.exit(BAD_INPUT)
        except click.Abort:
            sys.exit(INTERRUPTED)


def machines(command: Callable[P, R]) -> Callable[P, R]:
    """The options that say where and how to run; the numbers do not depend on them."""
    for option in (
        click.option("--cluster", metavar="ADDRESS", help="A running dask scheduler."),
        click.option("--devices", metavar="N|all", help="Devices to share the lanes."),
        click.option("--cores", type=int, help="Of a CPU; by default all that it may use."),
        click.option(
            "--engine", type=str, help="auto (the default), xla, native (a CPU) or cuda (a GPU)."
        ),
    ):
        command = option(command)
    return command


def into_folder(command: Callable[P, R]) -> Callable[P, R]:
    """The option that says where results go."""
    return click.option(
        "--out",
        metavar="DIR",
        type=PATH,
        required=True,
        help="Folder of results.",
    )(command)


def sharded(command: Callable[P, R]) -> Callable[P, R]:
    """The option that runs a part of the cells."""
    return click.option("--shard", metavar="I/N", help="Every N-th cell alone, from the I-th on.")(
        command
    )


def forced(command: Callable[P, R]) -> Callable[P, R]:
    """The option that lets results be replaced."""
    return click.option("--force", is_flag=True, help="Replace results of another sweep.")(command)


def extended(command: Callable[P, R]) -> Callable[P, R]:
    """The option that names files with constructors or experiments of the user's own."""
    return click.option(
        "--plugin",
        "plugins",
        metavar="FILE.py",
        multiple=True,
        type=PATH,
        help="Run FILE.py, which defines ALGORITHMS, INSTANCES or EXPERIMENTS; repeatable.",
    )(command)


def completed(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completion by what `names` lists, called only when a shell asks."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _sections() -> Iterable[str]:
    from .catalogue import KINDS

    return KINDS


def _experiments() -> Iterable[str]:
    from .catalogue import lines

    return dict(lines("experiments").shown)


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jaxbandits")
def main() -> None:
    """Simulate structured bandits: sweeps, tables, figures."""


@main.command()
@forced
@one_line
def demo(force: bool) -> None:
    """Run a small sweep into ./demo-results: progress, a table and a figure."""
    _run(Path(__file__).with_name("demo.toml"), DEMO_FOLDER, {}, force=force)


@main.command("list")
@click.argument("what", required=False, shell_complete=completed(_sections))
@extended
@one_line
def list_(what: str | None, plugins: tuple[Path, ...]) -> None:
    """List algorithms, instances or experiments (all of them without an argument)."""
    from ..system.plugins import read_files
    from . import catalogue

    sections = catalogue.KINDS if what is None else [catalogue.section(what)]
    files, faults = read_files(plugins), []
    for section in sections:
        click.echo(f"{section}:" if what is None else "", nl=what is None)
        lines = catalogue.lines(section, files)
        for name, text in lines.shown:
            click.echo(f"  {name:20} {text}")
        faults += lines.faults
    if faults:
        raise ValueError("; ".join(faults))


@main.command()
@click.argument("sweep", metavar="SWEEP.toml", type=PATH)
@into_folder
@click.option("--replications", type=int, help="Instead of the file's.")
@click.option("--seed", type=int, help="Instead of the file's.")
@sharded
@extended
@forced
@machines
@one_line
def run(
    sweep: Path,
    out: Path,
    replications: int | None,
    seed: int | None,
    shard: str | None,
    plugins: tuple[Path, ...],
    force: bool,
    **machine: Any,
) -> None:
    """Run every cell of SWEEP.toml; cells that DIR holds are not run again.

    Results of another sweep in DIR are refused; more replications, algorithms, instances or points
    of the same one are added to it. With --shard several machines that share DIR split the cells;
    the one that ends last writes the results.
    """
    how = _how(shard=shard, **machine)
    _run(sweep, out, how, force=force, plugins=plugins, replications=replications, seed=seed)


@main.command()
@click.argument("name", required=False, shell_complete=completed(_experiments))
@click.option("--all", "every", is_flag=True, help="Every experiment, into DIR/NAME.")
@into_folder
@click.option("--replications", type=int, help="Instead of the experiment's.")
@click.option(
    "--quick", is_flag=True, help="A small version: a fraction of a minute to some minutes."
)
@click.option("--data", type=PATH, help="Folder of local data sets.")
@sharded
@extended
@forced
@machines
@one_line
def reproduce(
    name: str | None,
    every: bool,
    out: Path,
    replications: int | None,
    quick: bool,
    data: Path | None,
    shard: str | None,
    plugins: tuple[Path, ...],
    force: bool,
    **machine: Any,
) -> None:
    """Run a figure or table of a paper and check its claims; see `list experiments`.

    Results of another experiment in DIR, or of more replications, are refused. With --all every
    experiment is run, one after the other; one that fails does not stop the others. With --shard
    several machines that share DIR split the cells; the one that ends last writes the results.
    """
    from .. import reproduce as experiments
    from .cache import all_programs_kept

    if (name is None) != every:
        raise ValueError("reproduce needs the NAME of an experiment, or --all in its place")
    options = {
        "replications": replications,
        "quick": quick,
        "data": data,
        "force": force,
        "plugins": _plugin_files(plugins, machine),
        "progress": True,
        **_how(shard=shard, **machine),
    }
    _check_drawing()
    _make_folder(out)
    with all_programs_kept():
        if name is None:
            _reproduce_all(experiments.reproduce_all(out, **options))
        else:
            _show_result(experiments.reproduce(name, out, **options), out)


def _reproduce_all(found: "Iterable[tuple[str, Path, Result | Exception | None]]") -> None:
    """Show what each experiment gives as it ends; raise at the end where some have failed."""
    from ..system.plugins import in_words
    from ..system.user_errors import told

    failed: list[str] = []
    for name, folder, result in found:
        if isinstance(result, Exception):
            expected = isinstance(result, ValueError | OSError)
            text = _reason(result) if expected else told(result) or in_words(result)
            failed.append(f"{name}: {text}")
            click.echo(f"{name} failed", err=True)
        else:
            click.echo(f"{name}:")
            _show_result(result, folder)
    if failed:
        raise ValueError(f"{len(failed)} of the experiments failed: {'; '.join(failed)}")


def _show_result(result: "Result | None", out: Path) -> None:
    """Table, files and claims of an experiment."""
    if result is None:
        _show_incomplete(out)
        return
    from ..reproduce.calculation import ROW
    from ..reproduce.claims import verdict_of

    if ROW in result.dataset.dims:
        _show_calculated(out)
    else:
        _show(result.dataset, out)

    for claim in result.claims:
        click.echo(f"{verdict_of(claim)}: {claim['claim']}")
        for name in ("ours", "paper"):
            if text := claim.get(name):
                click.echo(f"    {name}: {text}")
    judged, number = sum(x["holds"] is not None for x in result.claims), len(result.claims)
    if judged < number:
        why = "the others are about what was not played, or need more replications"
        click.echo(f"{judged} of {number} claims are judged; {why}")


@main.command()
@click.argument("folder", metavar="DIR", type=PATH)
@one_line
def report(folder: Path) -> None:
    """Write DIR/report.html: one page about the results in DIR or its sub-folders."""
    from ..report import write

    click.echo(f"report: {write(folder)}")


@main.command()
@click.argument("shell", metavar="bash|zsh|fish", shell_complete=completed(lambda: SHELLS))
@one_line
def completion(shell: str) -> None:
    """Print the script that makes a shell complete commands, options and names.

    For bash: eval "$(jaxbandits completion bash)", in ~/.bashrc to keep it.
    """
    from click.shell_completion import get_completion_class

    if shell not in SHELLS:
        from ..signatures import unknown

        raise unknown("shell", shell, SHELLS)
    complete = get_completion_class(shell)
    if complete is None:
        raise ValueError(f"{shell}: this version of click does not complete its commands")
    click.echo(complete(main, {}, "jaxbandits", "_JAXBANDITS_COMPLETE").source())


def _how(**options: Any) -> dict[str, Any]:
    """The options of how to run that were given, as `sweeps.run` takes them."""
    from ..whole_numbers import written_whole

    how = {name: value for name, value in options.items() if value is not None}
    number = written_whole(how.get("devices", ""))
    if number is not None:
        how["devices"] = number
    return how | ({"shard": _shard(how["shard"])} if "shard" in how else {})


def _shard(text: str) -> tuple[int, int]:
    from ..whole_numbers import written_whole

    first, slash, step = text.partition("/")
    pair = written_whole(first), written_whole(step)
    if not slash or pair[0] is None or pair[1] is None:
        raise ValueError(f"--shard must be I/N, as 2/5, got {brief(text)}")
    return pair[0], pair[1]


def _run(
    path: Path,
    out: Path,
    how: dict[str, Any],
    *,
    force: bool = False,
    plugins: tuple[Path, ...] = (),
    **overrides: Any,
) -> None:
    """Run the sweep of a file, and write its results and figure."""
    from .. import sweeps
    from ..report import frame, plot
    from ..sweeps.dataset import write
    from ..sweeps.folder import discard_claims, for_results
    from .cache import all_programs_kept

    chosen = {name: value for name, value in overrides.items() if value is not None}
    plan = sweeps.read(path, plugins=_plugin_files(plugins, how), **chosen)
    _check_drawing()
    with _in_file(path):
        cells = sweeps.check(plan, progress=True)
    _make_folder(out)
    shard = how.get("shard", (1, 1))
    with (
        _in_file(path),
        for_results(
            out, plan, cells, force=force, shard=shard, devices=how.get("devices")
        ) as folder,
        all_programs_kept(),
    ):
        dataset = sweeps.run(plan, cells=cells, out=folder, progress=True, bounds=True, **how)
        if dataset is None:
            _show_incomplete(out)
            return
        discard_claims(folder)
        write(dataset, out / "results.nc")
        plot.save(dataset, out / "figure.png")
        frame.write_csv(dataset, out / "table.csv")
    _show(dataset, out)


def _plugin_files(paths: tuple[Path, ...], machine: Mapping[str, Any]) -> "tuple[PluginFile, ...]":
    """The plugins that the user has named."""
    from ..system.plugins import read_files

    if paths and machine.get("cluster") is not None:
        raise ValueError(
            f"plugin {paths[0]}: the workers of a cluster do not have this file; make a package "
            "of it that is installed there too"
        )
    return read_files(paths)


def _show_incomplete(out: Path) -> None:
    click.echo(f"{out} does not hold all cells yet; the last shard to end writes the results")


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {out}: {error.strerror}") from None


def _show_calculated(out: Path) -> None:
    """Rows that no algorithm has played for, and the files."""
    click.echo((out / "table.csv").read_text(encoding="utf-8"), nl=False)
    _show_files(out)


def _show(dataset: "xarray.Dataset", out: Path) -> None:
    from ..report import table

    table.print_table(dataset)
    _show_files(out)
    click.echo(f"All on one page: jaxbandits report {shlex.quote(str(out))}")


def _show_files(out: Path) -> None:
    click.echo(f"figure: {out / 'figure.png'}")
    click.echo(f"table: {out / 'table.csv'}")
    click.echo(f"results: {out / 'results.nc'}")
