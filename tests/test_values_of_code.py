"""What the code of a user reads is part of the key of what is stored: a change of it is seen."""

import builtins
import importlib
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from run_settings import child

import jaxbandits as jb
from jaxbandits.live.constructor import describe as description
from jaxbandits.live.constructor import prepare
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.cluster import run_piece
from jaxbandits.sweeps.groups import Group
from jaxbandits.sweeps.spec import planned
from jaxbandits.sweeps.store import Store
from jaxbandits.system.identity import describe
from jaxbandits.system.own_code import Unknown, hash_of_code
from jaxbandits.version import VERSION

MINE = """
def mine(arms):
    return {}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A function that writes files, and imports one of them as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits come within a second
    before = set(sys.modules)

    def forget():
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("script", "helper", "helper2", "folder", "space"):
                del sys.modules[name]

    def loaded(files, name="script"):
        forget()
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield loaded
    forget()


# By case, the lines above a function, what it returns, and what changes while the program runs.
CHANGES = {
    "an object of a class": ("class A: pass\nX = A(); X.a = 1", "X.a", "X.a = 2"),
    "of a base class": ("class A:\n    a = 1\nclass B(A): pass\nX = B()", "X.a", "A.a = 2"),
    "a method of a base class": (
        "class A:\n    def a(self): return 1\nclass B(A): pass\nX = B()",
        "X.a()",
        "A.a = lambda self: 2",
    ),
    "a private attribute of a class": ("class A:\n    _a = 1\nX = A()", "X._a", "A._a = 2"),
    "a metaclass": (
        "K = 1\nclass M(type):\n    a = property(lambda self: K)\nclass A(metaclass=M): pass",
        "A.a",
        "K = 2",
    ),
    "a property": ("K = 1\nclass A:\n    a = property(lambda self: K)\nX = A()", "X.a", "K = 2"),
    "slots": ("class A:\n    __slots__ = ('a', '__b')\nX = A(); X.a = 1", "X.a", "X.a = 2"),
    "a private slot": (
        "class A:\n    __slots__ = ('__b',)\n    def set(self, b): self.__b = b\nX = A()",
        "X",
        "X.set(2)",
    ),
    "a dataclass with slots": (
        "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass A:\n    a: int = 1\nX = A()",
        "X.a",
        "X.a = 2",
    ),
    "a registry in a class": ("class A:\n    of = {}\nX = A()", "X.of", "A.of['a'] = 1"),
    "a list inside of an object": ("class A: pass\nX = A(); X.a = [[1]]", "X.a", "X.a[0][0] = 2"),
    "a subclass of dict": ("class A(dict): pass\nX = A(a=1)", "X['a']", "X['a'] = 2"),
    "a subclass of an array": (
        "import numpy as np\nclass A(np.ndarray): pass\nX = np.zeros(3).view(A)",
        "X",
        "X[1] = 2",
    ),
    "a long list": ("X = list(range(20_000))", "X[-1]", "X[-1] = 2"),
    "a large array": ("import numpy as np\nX = np.zeros(200_000)", "X[-1]", "X[-1] = 2"),
    "an array of objects": (
        "import numpy as np\nX = np.array([1, 'a'], object)",
        "X",
        "X[0] = 2",
    ),
    "the mask of an array": (
        "import numpy as np\nX = np.ma.masked_array([1, 2], [0, 1])",
        "X",
        "X.mask = [0, 0]",
    ),
    "an array of JAX": ("import jax.numpy as jnp\nX = jnp.zeros(2)", "X", "X = X + 1"),
    "a key of JAX": ("import jax\nX = jax.random.key(0)", "X", "X = jax.random.key(1)"),
    "a context variable": (
        "from contextvars import ContextVar\nX = ContextVar('X', default=1)",
        "X.get()",
        "X.set(2)",
    ),
    "a global by its name": ("X = 1", "globals()['X']", "X = 2"),
    "a global by a computed name": ("X = 1", "globals()['x'.upper()]", "X = 2"),
    "text that is evaluated": ("X = 1", "eval('X')", "X = 2"),
    "a module of the table of modules": (
        "import sys\nX = 1",
        "sys.modules[__name__].X",
        "X = 2",
    ),
    "a namespace": (
        "from types import SimpleNamespace\nX = SimpleNamespace(a=1)",
        "X.a",
        "X.a = 2",
    ),
    "a deque": ("from collections import deque\nX = deque([1])", "X[0]", "X.append(2)"),
    "the limit of a deque": (
        "from collections import deque\nX = deque([1])",
        "X",
        "X = deque([1], maxlen=2)",
    ),
    "a counter": ("from collections import Counter\nX = Counter('aa')", "X['a']", "X.update('a')"),
    "a frame": (
        "import pandas as pd\nX = pd.DataFrame({'a': [1.0, 2.0]})",
        "X['a'][0]",
        "X.loc[0, 'a'] = 2.0",
    ),
    "the names of the columns of a frame": (
        "import pandas as pd\nX = pd.DataFrame({'a': [1.0, 2.0]})",
        "X",
        "X.columns = ['b']",
    ),
    "a fraction": ("from fractions import Fraction\nX = Fraction(1, 3)", "X", "X = Fraction(2, 3)"),
    "a pattern": ("import re\nX = re.compile('a')", "X", "X = re.compile('b')"),
    "a generator of numbers": (
        "import numpy as np\nX = np.random.default_rng(0)",
        "X.random()",
        "X.random()",
    ),
    "an enumeration": (
        "import enum\nclass A(enum.Enum):\n    a, b = 1, 2\nX = A.a",
        "X",
        "X = A.b",
    ),
    "what a cached helper reads": (
        "import functools\nX = 1\n@functools.cache\ndef f(): return X",
        "f()",
        "X = 2",
    ),
    "what a compiled helper reads": (
        "import jax\nX = 1\n@jax.jit\ndef f(): return X",
        "f()",
        "X = 2",
    ),
    "axes of a helper": (
        "import jax\ndef g(x): return x\nf = jax.vmap(g, in_axes=0)",
        "f",
        "f = jax.vmap(g, in_axes=1)",
    ),
    "a closure of a library": ("import optax\nX = optax.sgd(0.1)", "X", "X = optax.sgd(0.2)"),
    "a built algorithm": (
        "import jaxbandits as jb, numpy as np\nX = jb.sequential_halving(np.eye(2), budget=4)",
        "X",
        "X = jb.sequential_halving(np.eye(2), budget=8)",
    ),
    "options of a partial": (
        "from functools import partial\nX = partial(max, 1)",
        "X",
        "X = partial(max, 2)",
    ),
    "one of two lambdas of a line": ("F = [lambda: 1, lambda: 2]; X = F[0]", "X()", "X = F[1]"),
    "an attribute of a function": ("def f(): return f.a\nf.a = 1", "f()", "f.a = 2"),
    "a default": ("X = [1]\ndef f(x=X): return x", "f()", "X.append(2)"),
    "a closure": (
        "class A: a = 1\nX = A()\ndef make(x):\n    def f(): return x.a\n    return f\nf = make(X)",
        "f()",
        "X.a = 2",
    ),
    "a method bound to an object": (
        "class A:\n    def f(self): return self.a\nX = A(); X.a = 1\nf = X.f",
        "f()",
        "X.a = 2",
    ),
    "a global of a class inside": ("X = 1", "type('A', (), {'x': X}).x", "X = 2"),
    "a global of a comprehension": ("X = 1", "[X for _ in range(2)]", "X = 2"),
    "a global of a lambda inside": ("X = 1", "(lambda: X)()", "X = 2"),
    "an attribute that a user gave to a library": (
        "import numpy as np\nnp.of_a_test = 1",
        "np.of_a_test",
        "np.of_a_test = 2",
    ),
    "what the command line said": ("import sys", "sys.argv[-1]", "sys.argv = [*sys.argv, 'a']"),
    "a name that a user made known everywhere": (
        "import builtins\nbuiltins.of_a_test = 1",
        "of_a_test",
        "builtins.of_a_test = 2",
    ),
    "what completes the options of a constructor": (
        "from jaxbandits.parameters import constructor\nX = 1\n"
        "@constructor(completes=lambda values: {'rate': X})\ndef f(arms, *, rate=None): ...",
        "f",
        "X = 2",
    ),
    "a name that was not there": ("", "X", "X = 2"),
}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    """What the cases change outside of their modules is put back."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    for module in (np, builtins):
        monkeypatch.setattr(module, "of_a_test", None, raising=False)


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_while_the_program_runs_is_seen(case, load):
    above, returned, change = CHANGES[case]
    files = {"script.py": f"{above}\n{MINE.format(returned)}"}
    before = hash_of_code(load(files).mine)
    module = load(files)
    assert hash_of_code(module.mine) == before != ""
    exec(change, vars(module))
    assert hash_of_code(module.mine) != before


CHILD = """
import sys
sys.path.insert(0, {folder!r})
import importlib
from jaxbandits.system.own_code import hash_of_code
for number in range({number}):
    print(hash_of_code(importlib.import_module(f"case{{number}}").mine))
"""


def test_all_processes_describe_values_alike(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    here = []
    alike = {name: case for name, case in CHANGES.items() if "command line" not in name}
    for number, (above, returned, _) in enumerate(alike.values()):
        (tmp_path / f"case{number}.py").write_text(f"{above}\n{MINE.format(returned)}")
        importlib.invalidate_caches()
        here.append(hash_of_code(importlib.import_module(f"case{number}").mine))
    code = CHILD.format(folder=str(tmp_path), number=len(here))
    assert child(code, PYTHONHASHSEED="5").split() == here


# By case, the name of the module, its text, a file and another text of it.
EDITS = {
    "a helper": ("script", "import helper" + MINE.format("helper.X"), "helper.py"),
    "a name of it": ("script", "from helper import X" + MINE.format("X"), "helper.py"),
    "all names of it": ("script", "from helper import *" + MINE.format("X"), "helper.py"),
    "an attribute by a computed name": (
        "script",
        "import helper" + MINE.format("getattr(helper, 'x'.upper())"),
        "helper.py",
    ),
    "a helper of a helper": ("script", "import helper2" + MINE.format("helper2.f()"), "helper.py"),
    "an import inside": ("script", MINE.format("__import__('helper').X"), "helper.py"),
    "a statement inside": (
        "script",
        MINE.format("X").replace("    r", "    from helper import X\n    r"),
        "helper.py",
    ),
    "a module by its name": (
        "script",
        "import importlib" + MINE.format("importlib.import_module('helper').X"),
        "helper.py",
    ),
    "a module in a dict": (
        "script",
        "import helper\nR = {1: helper}" + MINE.format("R[1].X"),
        "helper.py",
    ),
    "a neighbour in a package": (
        "folder.script",
        "from . import helper" + MINE.format("helper.X"),
        "folder/helper.py",
    ),
    "a package itself": ("script", "import folder" + MINE.format("folder.X"), "folder/__init__.py"),
    "a package without a file": (
        "script",
        "import space.helper" + MINE.format("space.helper.X"),
        "space/helper.py",
    ),
    "such a package inside": (
        "script",
        MINE.format("X").replace("    r", "    from space.helper import X\n    r"),
        "space/helper.py",
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_of_another_file_is_seen(case, load):
    name, text, file = EDITS[case]
    here = {f"{name.replace('.', '/')}.py": text, file: "X = 1"}
    if name == "folder.script":
        here["folder/__init__.py"] = ""
    here["helper2.py"] = "import helper\ndef f(): return helper.X"
    hashes = [
        hash_of_code(load(here | {file: x}, name).mine) for x in ("X = 1", "X = 2", "X=1  # so")
    ]
    assert hashes[0] == hashes[2] != hashes[1]


INNOCENT = """
from typing import NamedTuple

class State(NamedTuple):
    open: int
    load: int

class Box:
    def open(self): return 1

    def close(self): return self.open()

BOX = Box()

def mine(arms):
    open = arms > 0
    state = State(open, 1)
    return state.open, state.load, open, state._replace(open=2), BOX.open(), BOX.close()
"""


def test_names_alone_are_not_refused(load):
    assert hash_of_code(load({"script.py": INNOCENT}).mine) != ""


INSIDE = (
    "from os import environ\n    return environ['JB_TRIED']",
    "from os import getenv as get\n    return get('JB_TRIED')",
    "import os\n    return os.environ['JB_TRIED']",
    "from os import environ as e\n    return (lambda: e['JB_TRIED'])()",
)


@pytest.mark.parametrize("body", INSIDE)
def test_a_variable_counts_where_its_reader_is_imported_inside(body, load, monkeypatch):
    mine = load({"script.py": f"def mine(arms):\n    {body}\n"}).mine
    hashes = []
    for value in ("1", "2", "1"):
        monkeypatch.setenv("JB_TRIED", value)
        hashes.append(hash_of_code(mine))
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_module_that_a_function_imports_counts_as_it_is_in_memory(load):
    files = {
        "script.py": MINE.format("X").replace("    r", "    from helper import X\n    r"),
        "helper.py": "X = 1",
    }
    module = load(files)
    before = hash_of_code(module.mine)
    assert hash_of_code(module.mine) == before
    sys.modules["helper"].X = 2
    assert hash_of_code(module.mine) != before


ENVIRONMENT = (
    "os.environ['JB_TRIED']",
    "os.environ.get('JB_TRIED', '1')",
    "os.getenv('JB_TRIED', str(arms))",
    "'JB_TRIED' in os.environ",
    "environ['JB_TRIED']",
    "e['JB_TRIED']",
    "getenv('JB_TRIED')",
    "os.environ.get(NAME)",
)
HEAD = "import os\nfrom os import environ, getenv, environ as e\nNAME = 'JB_TRIED'\n"


@pytest.mark.parametrize("read", ENVIRONMENT)
def test_a_variable_of_the_environment_counts(read, load, monkeypatch):
    mine = load({"script.py": HEAD + MINE.format(read)}).mine
    hashes = []
    for value in ("1", "2", "1"):
        monkeypatch.setenv("JB_TRIED", value)
        hashes.append(hash_of_code(mine))
    assert hashes[0] == hashes[2] != hashes[1]


FILES = (
    "open({!r}).read()",
    "json.load(open({!r}))",
    "open(PATH).read()",
    "PATH.read_text()",
    "np.load({!r})",
    "pd.read_csv(PATH, sep=str(arms))",
)


# By an expression, in the folder of the script.
IN_THE_FOLDER = (
    "Path(__file__).with_name('data.csv').read_text()",
    "(Path(__file__).parent / 'data.csv').read_bytes()",
    "Path(FOLDER, 'data.csv').open().read()",
    "np.load(os.path.join(os.path.dirname(__file__), NAME))",
    "pd.read_csv(f'{FOLDER}/{NAME}', sep=str(arms))",
    "open(FOLDER + '/' + NAME).read()",
    "0\n\ndef mine(arms):\n    path = Path(FOLDER) / NAME\n    with open(path) as file:\n"
    "        return json.load(file)",
)


@pytest.mark.parametrize("read", IN_THE_FOLDER)
def test_a_file_that_constants_name_counts(read, load, tmp_path):
    head = "import json, os\nfrom pathlib import Path\nimport numpy as np\nimport pandas as pd\n"
    head += "FOLDER, NAME = os.path.dirname(__file__), 'data.csv'"
    script = load({"script.py": head + MINE.format(read)})
    data = Path(script.__file__).with_name("data.csv")
    hashes = []
    for text in ("1", "2", "1"):
        data.write_text(text)
        hashes.append(hash_of_code(script.mine))
    assert hashes[0] == hashes[2] != hashes[1]


NAMED = (
    "globals()['X']",
    "globals().get('X')",
    "eval('X + 1')",
    "getattr(OWN, 'X')",
    "globals()['X'] + getattr(OWN, 'X')",
)


@pytest.mark.parametrize("read", NAMED)
def test_what_constants_name_counts_and_no_other_global_does(read, load):
    head = "import sys, threading\nOWN, X, OTHER = sys.modules[__name__], 1, threading.local()"
    script = load({"script.py": head + MINE.format(read)})
    first = hash_of_code(script.mine)
    script.OTHER = threading.local()
    assert hash_of_code(script.mine) == first
    script.X = 2
    assert hash_of_code(script.mine) != first


@pytest.mark.parametrize("read", FILES)
def test_a_file_that_is_opened_counts(read, load, tmp_path):
    data = tmp_path / "data.csv"
    head = "from pathlib import Path\nimport json\nimport numpy as np\nimport pandas as pd\n"
    head += f"PATH = Path({str(data)!r})"
    mine = load({"script.py": head + MINE.format(read.format(str(data)))}).mine
    hashes = []
    for text in ("1", "2", "1"):
        data.write_text(text)
        hashes.append(hash_of_code(mine))
    assert hashes[0] == hashes[2] != hashes[1]


# By case, the lines above, what is returned, and what the message says.
REFUSED = {
    "a file": ("import io\nX = io.BufferedReader(io.BytesIO())", "X", r"X, an object of _io\.Buff"),
    "an attribute of an object": (
        "import threading\nclass A: pass\nX = A(); X.a = threading.local()",
        "X.a",
        r"mine reads X\.a, an object of \w",
    ),
    "a generator": ("X = (x for x in [1])", "next(X)", "mine reads X, an object of generator"),
    "what one thread alone sees": (
        "import threading\nX = threading.local()",
        "X",
        r"mine reads X, an object of _thread\._local",
    ),
    "in a helper": (
        "X = (x for x in [1])\ndef f(): return X",
        "f()",
        r"mine reads f\.X, an object of generator",
    ),
    "an object of a library": (
        "import zlib\nX = zlib.compressobj()",
        "X",
        r"an object of zlib\.Compress",
    ),
    "a computed variable": (
        "import os\nN = 'JB_'",
        "os.environ[N + 'X']",
        "a variable of the environment",
    ),
    "a variable in a formatted text": (
        "import os\nN = 'JB_'",
        "os.getenv(f'{N}X')",
        "a variable of the environment",
    ),
    "all variables": ("import os", "dict(os.environ)", "a variable of the environment"),
    "a computed file": ("F = 'x'", "open(F + str(arms))", "a file"),
    "a global by a computed name": (
        "import threading\nX = threading.local()",
        "globals()[str(arms)]",
        r"mine reads X \(by globals, eval or exec\), an object of _thread",
    ),
    "an attribute of a module by a computed name": (
        "import sys, threading\nOWN = sys.modules[__name__]\nX = threading.local()",
        "getattr(OWN, str(arms))",
        r"mine reads OWN\.X \(which a computed name may be\), an object of _thread",
    ),
    "a file of a table": ("import numpy as np", "np.loadtxt(str(arms))", "a file"),
    "a file by a function imported inside": (
        "",
        "[f(str(arms)) for f in [1]]\n\ndef mine(arms):\n    from numpy import load as f\n"
        "    return f(str(arms))",
        "a file",
    ),
    "a path made of an option": (
        "from pathlib import Path",
        "Path(str(arms)).read_text()",
        "a file",
    ),
    "one file of two": (
        "from pathlib import Path",
        "Path('x').read_text() + Path(str(arms)).read_text()",
        "a file",
    ),
    "one that a loop names": (
        "",
        "0\n\ndef mine(arms):\n    for x in 'ab':\n        x = x + 'c'\n        open(x)\n",
        "a file",
    ),
    "a computed module": (
        "import importlib\nN = 'a'",
        "importlib.import_module(N + 'b')",
        "a module",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_described_is_refused_by_name(case, load):
    above, returned, message = REFUSED[case]
    mine = load({"script.py": f"{above}\n{MINE.format(returned)}"}).mine
    with pytest.raises(Unknown, match=message) as error:
        hash_of_code(mine)
    assert "as an option" in str(error.value)
    assert "\n" not in str(error.value)


# Objects by how they are made. A function that reads one is described, in the same way each time.
DESCRIBED = {
    "threading": ("Lock()", "RLock()", "Semaphore()", "Condition()", "Event()", "Barrier(2)"),
    "logging": (
        *("getLogger()", "getLogger('a')", "LoggerAdapter(logging.getLogger('a'), {})"),
        *("NullHandler()", "StreamHandler()"),
    ),
    "sys": ("stdout", "stderr"),
    "io": ("TextIOWrapper(io.BufferedWriter(io.BytesIO()))",),
    "functools": ("partial(max, 1)", "lru_cache(max)", "cache(lambda x: x)", "singledispatch(max)"),
    "contextlib": ("suppress(ValueError)", "nullcontext()", "contextmanager(iter)", "ExitStack()"),
    "enum": ("Enum('A', 'a b').a", "Flag('A', 'a b')(3)"),
    "pathlib": ("Path('a')", "PurePosixPath('a')"),
    "decimal": ("Decimal('0.1')",),
    "fractions": ("Fraction(1, 3)",),
    "datetime": ("datetime(2020, 1, 1)", "date(2020, 1, 1)", "timedelta(1)", "timezone.utc"),
    "re": ("compile('a')",),
    "struct": ("Struct('d')",),
    "queue": ("Queue()",),
    "operator": ("itemgetter(0)",),
    "builtins": ("memoryview(b'a')", "bytearray(b'a')", "range(3)", "slice(3)", "list[int]"),
}
OTHERS = {"Fraction(1, 3)": "Fraction(1, 2)", "Struct('d')": "Struct('f')"}
OTHERS |= {"memoryview(b'a')": "memoryview(b'b')", "timedelta(1)": "timedelta(2)"}


def test_what_is_read_harmlessly_is_described(load):
    made = [f"{module}.{how}" for module, every in DESCRIBED.items() for how in every]
    above = f"import {', '.join(DESCRIBED)}\nMADE = [{', '.join(f'lambda: {x}' for x in made)}]\n"
    script = load({"script.py": f"{above}X = None\n{MINE.format('X')}"})
    for how, make in zip(made, script.MADE, strict=True):
        hashes = []
        for _ in range(2):
            script.X = make()
            hashes.append(hash_of_code(script.mine))
        assert hashes[0] == hashes[1], how
        other = OTHERS.get(how.partition(".")[2])
        if other is not None:
            script.X = eval(how.partition(".")[0] + "." + other, vars(script))
            assert hash_of_code(script.mine) != hashes[0], how


ALGORITHM = """
import jax.numpy as jnp
import jaxbandits as jb

class Settings:
    def __init__(self, stop): self.stop = stop

SETTINGS = Settings(6)
EXTRA = None

def mine(arms, *, rule=None, path=None):
    def init(key): return jnp.zeros((), int)
    def ask(key, state): return jb.Move(state % 2, None, state >= SETTINGS.stop, 0 * state)
    def tell(state, move, reward): return state + 1
    return jb.Algorithm(init, ask, tell)
"""
ARMS = [[1.0, 0.0], [0.0, 1.0]]
TABLE = jb.instances.linear(ARMS, [1.0, 0.0])


def spec(algorithm):
    return cells_of(planned({"i": TABLE}, {"a": algorithm}, replications=2))[0].spec


def test_a_stored_sweep_is_not_resumed_with_other_values(load, tmp_path):
    """The object that an algorithm reads is another one in the next process, its file is not."""

    def pulls(stop):
        module = load({"script.py": ALGORITHM})
        module.SETTINGS.stop = stop
        settings = {"replications": 2, "progress": False, "engine": "xla", "out": tmp_path / "out"}
        return jb.sweep({"i": TABLE}, {"a": module.mine}, **settings).pulls.values.max()

    assert [pulls(stop) for stop in (6, 8, 6)] == [6, 8, 6]
    assert len([*(tmp_path / "out" / "cells").iterdir()]) == 2


def test_a_cell_is_refused_only_where_it_would_be_stored(load, tmp_path):
    module = load(
        {
            "script.py": ALGORITHM.replace("EXTRA = None", "EXTRA = open(__file__)").replace(
                "0 * state", "0 * state if EXTRA else 0"
            )
        }
    )
    found = spec(module.mine)
    assert spec(module.mine) == found
    message = r"^mine reads EXTRA, an object of _io\.TextIOWrapper, .*, or leave out `out`$"
    with pytest.raises(ValueError, match=message):
        Store(tmp_path).path(found)
    with pytest.raises(ValueError, match=r"^constructor: mine reads EXTRA.*, or leave out `path`$"):
        jb.Live(module.mine, ARMS, path=tmp_path / "run.npz")
    assert not (tmp_path / "run.npz").exists()
    module.EXTRA.close()


OBJECTS = """
import dataclasses
from typing import NamedTuple

@dataclasses.dataclass(frozen=True)
class Plain:
    a: float

@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    a: float

class Tuple(NamedTuple):
    a: float

class Object:
    def __init__(self, a): self.a = a

class Called(Object):
    def __call__(self): return self.a

def made(a, kind):
    return globals()[kind](a)
"""


@pytest.mark.parametrize("kind", ["Plain", "Slots", "Tuple", "Object", "Called"])
def test_an_object_as_an_option_counts_by_what_it_holds(kind, load, tmp_path):
    def keys(a, text=OBJECTS):
        module = load({"script.py": ALGORITHM + text})
        build = partial(module.mine, rule=module.made(a, kind))
        return Store(tmp_path).path(spec(build)).name, description(
            *prepare(build, ARMS, targets=None, noise_var=1.0, theta_norm=None, family=None), 0
        )

    (name, live), other = keys(1.0), keys(2.0)
    assert keys(1.0) == (name, live)
    assert name != other[0]
    assert live != other[1]
    edited = keys(1.0, OBJECTS.replace("def made", "def unused(): ...\ndef made"))
    assert edited[0] != name


CALLED = """
class Rule:
    def __init__(self, stop): self.stop = stop

    def __call__(self, arms):
        def init(key): return jnp.zeros((), int)
        def ask(key, state): return jb.Move(state % 2, None, state >= self.stop, 0 * state)
        def tell(state, move, reward): return state + 1
        return jb.Algorithm(init, ask, tell)
"""


def test_an_object_that_is_an_algorithm_counts_by_what_it_holds(load, tmp_path):
    path = Store(tmp_path).path
    six, again, eight = (load({"script.py": ALGORITHM + CALLED}).Rule(n) for n in (6, 6, 8))
    assert path(spec(six)) == path(spec(again)) != path(spec(eight))
    with jb.Live(six, ARMS, path=tmp_path / "run.npz") as run:
        run.tell(1.0)
    with jb.Live(again, ARMS, path=tmp_path / "run.npz") as run:
        assert run.pulls == 1
    with pytest.raises(ValueError, match=r"the code of script\.Rule has changed"):
        jb.Live(eight, ARMS, path=tmp_path / "run.npz")


@pytest.mark.parametrize("pair", [("0.5", 0.5), ("5", np.int64(5)), ({1: 0}, {"1": 0})], ids=str)
def test_options_that_look_alike_are_told_apart(pair):
    one, two = (describe({"option": value}) for value in pair)
    assert one != two
    assert describe({"option": "greedy"}) == {"option": "greedy"}


def test_a_worker_with_other_code_is_refused(load):
    """One that has imported a module before it was edited, say."""
    module = load({"script.py": ALGORITHM})
    plan = planned({"i": TABLE}, {"a": module.mine}, replications=2)
    group = Group(tuple(cells_of(plan)))
    piece = VERSION, plan, group, {0: np.arange(2)}, 2, {"engine": "xla"}
    module.SETTINGS.stop = 8
    with pytest.raises(ValueError, match=r"other code of yours behind \[algorithms\.a\] than the"):
        run_piece(*piece)
    module.SETTINGS.stop = 6
    assert run_piece(*piece)[0].pulls.tolist() == [6, 6]


def test_a_file_that_an_option_names_may_be_read(load, tmp_path):
    text = ALGORITHM.replace(
        "    def init", "    with open(path) as file: rows = file.read()\n    def init"
    )
    data, build = tmp_path / "data.csv", load({"script.py": text}).mine
    keys = []
    for rows in ("1", "2", "1"):
        data.write_text(rows)
        keys.append(Store(tmp_path).path(spec(partial(build, path=str(data)))))
    assert keys[0] == keys[2] != keys[1]
    build = partial(build, path=str(data))
    jb.Live(build, ARMS, path=tmp_path / "run.npz").close()
    data.write_text("2")
    with pytest.raises(ValueError, match=r"the files of path '.*data\.csv' have changed since the"):
        jb.Live(build, ARMS, path=tmp_path / "run.npz")


def test_a_long_file_is_hashed_once_and_fast(load):
    text = "\n".join(f"def f{n}(x):\n    return [x + {n}, x * {n}]" for n in range(2000))
    mine = load({"script.py": text + MINE.format("f7(1)")}).mine
    hash_of_code(mine)
    began = time.perf_counter()
    hash_of_code(mine)
    assert time.perf_counter() - began < 0.5


def test_nothing_is_said_of_iterators_that_python_will_not_pickle(load):
    mine = load(
        {"script.py": "import itertools\nX = itertools.count(1)" + MINE.format("next(X)")}
    ).mine
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hash_of_code(mine) != ""
