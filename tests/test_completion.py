"""Completion: scripts for three shells, and the names they offer."""

import pytest
from click.testing import CliRunner

from jaxbandits.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_JAXBANDITS_COMPLETE={shell}_complete" in result.stdout


def test_completion_of_an_unknown_shell():
    result = CliRunner().invoke(main, ["completion", "bsh"])
    assert result.exit_code == 2
    hint = "did you mean 'bash'? allowed: bash, fish, zsh"
    assert result.stderr == f"error: unknown shell 'bsh'; {hint}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("jaxbandits li", "plain,list"),
        ("jaxbandits list alg", "plain,algorithms"),
        ("jaxbandits reproduce lingape/fig1", "plain,lingape/fig1"),
        ("jaxbandits completion z", "plain,zsh"),
    ],
)
def test_completed_names(words, expected):
    environment = {
        "_JAXBANDITS_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = CliRunner().invoke(main, [], env=environment, prog_name="jaxbandits")
    assert expected in result.stdout.splitlines()
