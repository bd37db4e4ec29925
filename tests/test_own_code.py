"""Algorithms of a user are stored with a hash of their code: after an edit nothing old is taken.

The hash is of the user's files and of what their functions read; `test_values_of_code` is about the
second.
"""

import functools
import importlib.util
import sys
from functools import partial

import jax
import numpy as np
import pytest
from run_settings import child

import jaxbandits as jb
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.spec import Part, Sweep
from jaxbandits.system import user_files
from jaxbandits.system.identity import describe
from jaxbandits.system.own_code import hash_of_code

RULES = """
def best(sums):
    return jnp.argmax(sums)
"""
MINE = '''
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

import jaxbandits as jb

STOP = 6
WEIGHTS = (1.0, 2.0)
RULES

class State(NamedTuple):
    draws: jax.Array
    sums: jax.Array

    def more(self):
        return self.draws + 1

def mine(arms, *, each=1):
    """Draw in turn."""
    num_arms = arms.shape[0]

    def init(key):
        return State(jnp.zeros((), int), jnp.zeros(num_arms))

    def ask(key, state):
        arm = state.draws // each % num_arms
        return jb.Move(arm, None, state.draws >= STOP, best(state.sums))

    def tell(state, move, reward):
        return State(state.more(), state.sums.at[move.arm].add(WEIGHTS[0] * reward))

    return jb.Algorithm(init, ask, tell)

def unrelated():
    return 1
'''.replace("RULES", RULES)
ARMS = np.eye(2)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A function that gives the module of a text, as a script would have it that runs anew."""

    def loaded(text, name="scripted", folder=""):
        path = tmp_path / folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits come within a second
        spec.loader.exec_module(module)
        return module

    return loaded


EDITS = {
    "the constructor": ("// each", "// (each + 1)"),
    "a default": ("each=1", "each=2"),
    "a function that it calls": ("jnp.argmax", "jnp.argmin"),
    "a class": ("sums: jax.Array", "sums: jax.Array | None"),
    "a method": ("self.draws + 1", "self.draws + 2"),
    "a number": ("STOP = 6", "STOP = 8"),
    "a tuple": ("(1.0, 2.0)", "(1.5, 2.0)"),
    "a library": ("import jax.numpy as jnp", "import numpy as jnp"),
}
REWRITES = {
    "a comment": ("    num_arms", "    # of all\n    num_arms"),
    "a docstring": ("Draw in turn.", "Draw the arms in turn."),
    "the layout": ("(key, state)", "(\n        key, state\n    )"),
    "lines above": ("STOP = 6", "\n\n\nSTOP = 6"),
    "what a script runs": (
        "    return 1\n",
        "    return 1\n\nif __name__ == '__main__':\n    print(1)",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_identity(edit, load):
    before = str(describe(load(MINE).mine))
    before_at_budget = str(describe(jb.at_budget(load(MINE).mine, 20)))
    after = load(MINE.replace(*EDITS[edit])).mine
    assert str(describe(after)) != before
    assert str(describe(jb.at_budget(after, 20))) != before_at_budget
    assert before.startswith("scripted.mine code:")


@pytest.mark.parametrize("rewrite", REWRITES)
def test_what_is_no_code_changes_nothing(rewrite, load):
    old, new = REWRITES[rewrite]
    before = describe(load(MINE).mine)
    assert MINE.replace(old, new) != MINE
    assert describe(load(MINE.replace(old, new)).mine) == before
    assert ":" in before


def test_a_moved_file_is_the_same_code(load):
    assert describe(load(MINE).mine) == describe(load(MINE, folder="elsewhere").mine)
    assert hash_of_code(load(MINE).mine) == hash_of_code(load(MINE, "renamed").mine) != ""


@pytest.mark.parametrize("way", ["import rules", "from rules import best"])
def test_other_files_of_the_user_count(way, load):
    head = "import jax.numpy as jnp\n"
    called = "rules.best" if way == "import rules" else "best"
    text = MINE.replace(RULES, way).replace("best(state", f"{called}(state")
    hashes = []
    for rules in (RULES, RULES.replace("argmax", "argmin"), f"# one\n{RULES}"):
        load(head + rules, "rules")
        hashes.append(hash_of_code(load(text).mine))
    assert hashes[0] == hashes[2] != hashes[1]


WRAPPERS = {
    "options": lambda module: partial(module.mine, each=3),
    "a budget": lambda module: jb.at_budget(module.mine, 20),
    "another budget": lambda module: jb.at_budget(partial(module.mine, each=3), 20),
    "a decorator": lambda module: functools.wraps(module.mine)(lambda arms: module.mine(arms)),
    "jit": lambda module: jax.jit(module.mine),
    "an option that is a function": lambda module: partial(jb.lingape, rule=module.best),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_is_around_a_function_is_seen_through(wrapper, load):
    edited = MINE.replace("jnp.argmax", "jnp.argmin")
    hashes = [hash_of_code(WRAPPERS[wrapper](load(text))) for text in (MINE, MINE, edited)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_constructors_of_this_package_keep_their_names(monkeypatch):
    monkeypatch.setattr(user_files.UserFiles, "add", None)  # no file is read for them
    assert describe(jb.lingape) == "jaxbandits.algorithms.lingape.lingape"
    assert describe(jb.instances.soare) == "jaxbandits.instances.named.soare"
    at_budget = describe(jb.at_budget(jb.lingape, 9))
    assert at_budget[0] == "at_budget(jaxbandits.algorithms.lingape.lingape)"
    assert describe(jb.watched(jb.glm_tsl))[0].endswith("glm_tsl)")


def test_a_file_that_was_edited_after_its_import_is_not_taken_for_the_code_in_memory(load):
    old = load(MINE).mine
    new = load(MINE.replace("// each", "// (each + 1)")).mine  # in the place of the old file
    assert len({hash_of_code(old), hash_of_code(new), hash_of_code(load(MINE).mine)}) == 3


def test_without_a_text_what_it_is_compiled_to_counts():
    def typed(text):
        scope = {"__name__": "typed"}
        exec(f"def mine(arms): return {text}", scope)
        return describe(scope["mine"])

    assert typed("arms") == typed("arms")
    assert typed("arms") != typed("2 * arms")
    assert typed("arms").startswith("typed.mine code:")


def test_odd_globals_do_no_harm(load):
    odd = """
import numpy as np

class Odd:
    def __getattr__(self, name):
        raise RuntimeError(name)

ODD, LOOP, KEYS, CALLS = Odd(), [], {"a": 1.5, 2: {"b"}}, 0
LOOP.append(LOOP)
TABLE = np.eye(2)

def mine(arms):
    global CALLS
    CALLS += 1
    return ODD, KEYS, TABLE

def looped(arms):
    return LOOP
"""
    module = load(odd)
    before = hash_of_code(module.mine)
    module.CALLS = 5  # which it only counts up
    assert hash_of_code(module.mine) == before != ""
    module.TABLE[0, 0] = 2.0
    assert hash_of_code(module.mine) != before
    looped = hash_of_code(module.looped)
    module.LOOP.append(1)
    assert hash_of_code(module.looped) != looped != ""


CHILD = """
import sys
sys.path.insert(0, {folder!r})
import scripted
from jaxbandits.system.own_code import hash_of_code
print(hash_of_code(scripted.mine))
"""


def test_all_processes_find_one_hash(load, tmp_path):
    text = MINE.replace("// each", "// each + (key in {'a', 'b', 'c'})")
    found = hash_of_code(load(text).mine)
    assert child(CHILD.format(folder=str(tmp_path)), PYTHONHASHSEED="5") == f"{found}\n"


def test_the_known_hash_of_a_text(load):
    """The same with each version of Python."""
    assert hash_of_code(load(MINE).mine) == "code:4c6a42a04d14c2d8"


def test_what_python_adds_to_classes_does_not_count(load):
    """It differs from version to version."""
    classes = """
import dataclasses, enum
from typing import NamedTuple

class Kind(enum.Enum):
    ONE = 1

class State(NamedTuple):
    draws: int

@dataclasses.dataclass
class Rule:
    rate: float = 0.5

    @property
    def half(self):
        return self.rate / 2

def mine(arms):
    return Kind, State, Rule
"""
    assert hash_of_code(load(classes).mine) == "code:221a0ec0d3207158"


def test_a_plugin_goes_by_its_own_hash_and_what_its_code_reads(load):
    instance = Part("instance", "i", jb.instances.canonical(2, gap=1.0), {})

    def spec(source):
        algorithm = Part("algorithm", "a", load(MINE).mine, {}, source=source)
        return cells_of(Sweep((instance,), (algorithm,), {}, 2))[0].spec

    assert spec("mine.py sha256:0")["plugins"] == {"algorithm": "mine.py sha256:0"}
    assert spec("mine.py sha256:0")["algorithm"] == spec("")["algorithm"]
    assert spec("")["algorithm"][0].startswith("scripted.mine code:")


def test_cells_of_an_edited_algorithm_are_played_anew(load, tmp_path):
    def pulls(text):
        play = partial(jb.sweep, {"two": jb.instances.canonical(2, gap=1.0)})
        algorithms = {"mine": load(text).mine}
        found = play(algorithms, replications=2, out=tmp_path, progress=False, engine="xla")
        return found.pulls.values.max(), len([*(tmp_path / "cells").iterdir()])

    assert pulls(MINE) == (6, 1)
    assert pulls(MINE.replace("STOP = 6", "# fewer\nSTOP = 6")) == (6, 1)
    assert pulls(MINE.replace("STOP = 6", "STOP = 8")) == (8, 2)


def test_a_live_run_is_not_continued_by_an_edited_algorithm(load, tmp_path):
    def live(text):
        return jb.Live(load(text).mine, ARMS, path=tmp_path / "run.npz")

    with live(MINE) as run:
        run.tell(1.0)
    with live(MINE.replace("STOP = 6", "# fewer\nSTOP = 6")) as run:
        assert run.pulls == 1
    message = r"run\.npz.*the code of scripted\.mine has changed since the file was written"
    with pytest.raises(ValueError, match=message):
        live(MINE.replace("jnp.argmax", "jnp.argmin"))
    with live(MINE) as run:
        assert run.pulls == 1
