"""Compiled programs that the command line keeps: in a private folder, replaced if damaged."""

import stat
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from programs import jax_keeps_programs

from jaxbandits.cli.cache import all_programs_kept
from jaxbandits.system.kept_programs import _unusable, _usable
from jaxbandits.system.private_folders import NotPrivate, check_private, private_folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder that the command line chooses if JAX has no cache folder set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAXBANDITS_CACHE", raising=False)
    _usable.cache_clear()
    _unusable.cache_clear()
    with jax_keeps_programs(None):
        yield tmp_path / "jaxbandits"


def a_program(number):
    """The result of a function that is new with each call, so that it is compiled or read."""
    return float(jax.jit(lambda x: x * 3.0 + number)(jnp.float32(2.0)))


def check_results(*pairs):
    """Check programs that are kept; `pairs` are numbers, each followed by its expected result."""
    with all_programs_kept():
        for number, expected in zip(pairs[::2], pairs[1::2], strict=True):
            assert a_program(number) == expected


def test_the_folder_is_made_for_the_user_alone(home):
    check_results(1.0, 7.0)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert any(home.iterdir())
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.parametrize("harm", ["others may write", "a file", "anybody may replace"])
def test_an_unsafe_folder_is_not_used(home, harm):
    if harm == "a file":
        home.write_text("")
    elif harm == "others may write":
        home.mkdir()
        home.chmod(0o777)
    else:
        home.parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="are not kept: ") as warned:
        check_results(1.0, 7.0)
    assert len(warned) == 1
    assert str(home if harm != "anybody may replace" else home.parent) in str(warned[0].message)
    assert not home.is_dir() or not any(home.iterdir())


@pytest.mark.parametrize("harm", ["cut short", "garbage", "empty"])
def test_damaged_programs_are_compiled_anew_and_kept_again(home, harm):
    check_results(2.0, 8.0)
    entries = sorted(home.glob("*-cache"))
    for entry in entries:
        whole = entry.read_bytes()
        entry.write_bytes(
            {"cut short": whole[: len(whole) // 2], "empty": b""}.get(harm, whole[::-1])
        )
    with (
        pytest.warns(RuntimeWarning, match="is damaged and compiled anew") as warned,
        all_programs_kept(),
    ):
        assert a_program(2.0) == 8.0
    assert len(warned) == 1
    assert sorted(home.glob("*-cache")) == entries
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_results(2.0, 8.0)


def test_a_full_disk_warns_once(home, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*No space left") as warned:
        check_results(3.0, 9.0, 4.0, 10.0)
    assert len(warned) == 1


def test_other_warnings_are_passed_on(home):
    with pytest.warns(UserWarning, match="something else"), all_programs_kept():
        warnings.warn("something else", UserWarning, stacklevel=1)


def test_a_folder_of_another_user_is_not_private(tmp_path, monkeypatch):
    assert private_folder(tmp_path / "deep" / "mine") == tmp_path / "deep" / "mine"
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(NotPrivate, match="mine belongs to another user"):
        check_private(tmp_path / "deep" / "mine")
