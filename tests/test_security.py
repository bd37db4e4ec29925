"""Promises of SECURITY.md: files are read as data only, and no name leads out of its folder."""

import ast
from pathlib import Path

import jinja2
import pytest
from click.testing import CliRunner
from pages import example
from test_report import Reader

import jaxbandits
from jaxbandits.cli.main import main
from jaxbandits.report import plot
from jaxbandits.report.html.rendering import environment

ROOT = Path(jaxbandits.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *ROOT.parent.glob("benchmarks/**/*.py")])
# Modules that may run code while they read stored or received objects.
UNPICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
NETWORK = {"dask", "distributed", "dask_jobqueue"}  # their messages are pickles: SECURITY.md
KEEPER = "system/keeping.py"  # what it reads lies in a folder of the user alone: SECURITY.md
BUILTINS = {"eval", "exec", "compile", "__import__"}
# Compiles files that run already, to compare them with what is in memory, and runs none of it.
COMPARER = "system/syntax.py"
# Imports what a function that is about to run imports, so that its values are known before.
IMPORTER = "system/own_code.py"
METHODS = {"read_pickle", "to_pickle", "import_module", "unsafe_load"}
OWNED = {("yaml", "load"), ("os", "system"), ("os", "popen")}
# Modules that may load compiled code, or run a file that the user has named.
LOADERS = {
    "CDLL": {"compilers/cpp/build.py", "compilers/cuda/nvrtc.py", "build.py"},
    "exec_module": {"system/plugins.py", "replaced.py"},  # that: the package itself, as Python does
    "entry_points": {"system/plugins.py"},
}
SHELLS = {"shell", "allow_pickle"}  # keywords that must be False


def imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def faults(name, tree):
    """Descriptions of what in a module could run code from a file that it reads."""
    for node in ast.walk(tree):
        for module in imported(node):
            start = module.split(".")[0]
            unpickles = start in UNPICKLERS and name != KEEPER
            if unpickles or (start in NETWORK and name != "sweeps/cluster.py"):
                yield f"imports {module}"
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        builtin = called.id if isinstance(called, ast.Name) else ""
        if builtin in BUILTINS and (name, builtin) != (COMPARER, "compile"):
            yield f"calls {builtin}"
        if not isinstance(called, ast.Attribute):
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        owner = called.value.id if isinstance(called.value, ast.Name) else ""
        by_importer = (name, called.attr) == (IMPORTER, "import_module")
        if (called.attr in METHODS and not by_importer) or (owner, called.attr) in OWNED:
            yield f"calls {owner}.{called.attr}"
        if (
            called.attr == "load"
            and owner in ("np", "numpy", "jnp")
            and "allow_pickle" not in keywords
        ):
            yield "np.load without allow_pickle=False"
        if name not in LOADERS.get(called.attr, {name}):
            yield f"loads code by {called.attr}"
        for keyword in SHELLS & set(keywords):
            if getattr(keywords[keyword], "value", None) is not False:
                yield f"{keyword}=..."


def test_no_module_can_run_code_from_a_file_that_it_reads():
    found = {}
    for file in FILES:
        name = str(file.relative_to(ROOT)) if ROOT in file.parents else file.name
        found[name] = list(faults(name, ast.parse(file.read_text())))
    assert "sweeps/cluster.py" in found
    assert {name: texts for name, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import distributed",
        "eval('1')",
        "exec(text)",
        "compile(text, '', 'exec')",
        "__import__(name)",
        "importlib.import_module(name)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text)",
        "xarray.read_pickle(path)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "ctypes.CDLL(path)",
        "loader.exec_module(module)",
        "importlib.metadata.entry_points(group=name)",
    ],
)
def test_the_scan_finds_dangerous_code(code):
    assert list(faults("somewhere.py", ast.parse(code)))


def test_text_is_never_markup():
    hostile = "<b a='1' b=\"2\">&\x00\x1b[2J\ud800\n"
    template = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    page = template.render(text=hostile)
    inside = page.removeprefix('<p title="').removesuffix("</p>").replace('">', "", 1)
    assert not set(inside) & set("<>\"'\x00\x1b\ud800")
    assert page.encode().decode() == page
    found = Reader(page)
    assert found.tags == ["p"]
    assert "<b a='1'" in "".join(found.words)


def test_a_name_that_a_template_does_not_get_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        environment().from_string("{{ missing }}").render()


def test_names_in_a_figure_are_not_read_as_formulas(tmp_path):
    axis = r"$\frac$"
    hostile = r"$\undefined{$", "--><script>alert(1)</script>"
    dataset = example(instances=hostile, algorithms=hostile).rename(gap=axis)
    dataset.attrs["axes"] = f'["{axis}"]'.replace("\\", "\\\\")
    plot.save(dataset, tmp_path / "figure.png", title=r"$\nothing{$")
    assert (tmp_path / "figure.png").stat().st_size > 1000


LABELS = ["../../outside", "/tmp/outside", r"..\\outside", r"$\\frac$ <script>", "--> ]]> &amp; %s"]
SWEEP = """
replications = 3
[instances."{0}"]
name = "canonical"
dim = 2
gap = 1.0
[algorithms."{1}"]
name = "sequential_halving"
budget = 4
[algorithms."{2}"]
name = "sequential_halving"
budget = 4
[algorithms."{3}"]
name = "sequential_halving"
budget = 4
[algorithms."{4}"]
name = "sequential_halving"
budget = 4
"""


def test_labels_stay_in_the_folder_of_results(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    sweep, out = home / r"$\frac$ <b>.toml", home / "out"
    sweep.write_text(SWEEP.format(*LABELS))
    for command in (["run", str(sweep), "--out", str(out)], ["report", str(out)]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    files = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert all(path.parts[:2] == ("home", "out") or path.name == sweep.name for path in files)
    assert not any("outside" in path.name for path in files)
    page = (out / "report.html").read_text()
    assert "<script" not in page
    words = " ".join(Reader(page).words)
    assert all(label.replace("\\\\", "\\") in words for label in LABELS)
