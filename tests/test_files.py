"""Files are written completely or not at all, also by several threads."""

import errno
import os
import stat
import threading
from functools import partial

import numpy as np
import pytest
from run_settings import child

import jaxbandits as jb
from jaxbandits.system import locks
from jaxbandits.system.data_files import Unreadable
from jaxbandits.system.file_stamps import stamps_of
from jaxbandits.system.files import remove_partial, replacing
from jaxbandits.system.identity import stored_name

WRITE = """
import os
from pathlib import Path
import jaxbandits as jb
from jaxbandits.system.files import replacing
from jaxbandits.system.identity import stored_name
for mask in {masks}:
    os.umask(mask)
    with replacing(Path({folder!r}) / str(mask)) as new:
        new.write_text("new")
"""


def test_the_umask_decides_who_may_read(tmp_path):
    modes = {0o027: 0o640, 0o002: 0o664}
    for mask in modes:
        (tmp_path / str(mask)).touch(0o600)
    child(WRITE.format(masks=list(modes), folder=str(tmp_path)))
    for mask, mode in modes.items():
        assert stat.S_IMODE((tmp_path / str(mask)).stat().st_mode) == mode


def test_several_threads_can_replace_one_file(tmp_path):
    path, count = tmp_path / "file", 8
    inside, names = threading.Barrier(count, timeout=60), []

    def work(number):
        with replacing(path) as new:
            names.append(new)
            new.write_text(f"{number}" * 1000)
            inside.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == count
    assert path.read_text() in {f"{number}" * 1000 for number in range(count)}
    assert list(tmp_path.iterdir()) == [path]


def test_a_partial_file_of_another_writer_is_left_alone(tmp_path, monkeypatch):
    taken, names = tmp_path / ".file-aa.partial", iter(["aa", "aa", "bb"])
    taken.write_text("another's")
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    with replacing(tmp_path / "file") as new:
        assert new.name == ".file-bb.partial"
    assert taken.read_text() == "another's"


def left_in(folder, name):
    """A file that a process which was killed has left."""
    path = folder / f".{name[:40]}-0123abcd.partial"
    path.write_text("half of it")
    return path


@pytest.mark.parametrize("name", ["run.npz", "x", "x" * 60, "a[1]*?.npz", ".hidden"])
def test_what_killed_processes_left_of_a_file_is_removed_when_it_is_written(name, tmp_path):
    left, other = left_in(tmp_path, name), left_in(tmp_path, "other")
    with replacing(tmp_path / name) as new:
        new.write_text("new")
        assert not left.exists()
        remove_partial(tmp_path, name)
        remove_partial(tmp_path)  # what is written now stays
    assert (tmp_path / name).read_text() == "new"
    assert not other.exists()
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_only_names_of_partial_files_are_removed(tmp_path):
    names = [
        "x.partial",
        ".x-0123abc.partial",
        ".x-0123abcg.partial",
        ".x-0123abcd.part",
        ".partial",
    ]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / ".x-0123abcd.partial").symlink_to("x.partial")  # a link is not ours
    os.mkfifo(tmp_path / ".y-0123abcd.partial")
    remove_partial(tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {*names, ".x-0123abcd.partial", ".y-0123abcd.partial"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "it is a named pipe, and no file"),
        (os.mkdir, "it is a folder, and no file"),
        (lambda path: path.symlink_to("/dev/null"), "it is a device, and no file"),
    ],
    ids=["a pipe", "a folder", "a device"],
)
def test_what_is_no_file_is_not_replaced_by_one(make, words, tmp_path):
    make(tmp_path / "x")
    before = (tmp_path / "x").lstat()
    runs = jb.Runs(*np.zeros((3, 1), int), *np.ones((2, 1), bool), np.zeros((1, 2), int))
    with pytest.raises(ValueError, match=rf"x cannot be written: {words}$"):
        runs.save(tmp_path / "x")
    assert os.path.samestat(before, (tmp_path / "x").lstat())
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("gone", [False, True])
def test_an_error_while_a_file_is_written_names_it(gone, tmp_path):
    """Also one that names no file, as of a full disk, and where the new file is gone already."""

    def fill(*names):
        with replacing(tmp_path / "x") as new:
            if gone:
                new.unlink()
            raise OSError(errno.ENOSPC, "No space left on device", *names)

    for names, named in [((), str(tmp_path / "x")), (("/another/file",), "/another/file")]:
        with pytest.raises(OSError, match="No space left") as caught:
            fill(*names)
        assert caught.value.filename == named
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("taken", ["locked", "removed"])
def test_a_new_file_that_another_process_takes_for_a_left_one_is_given_up(
    taken, tmp_path, monkeypatch
):
    """Between its creation and its lock it looks as if it were left behind."""
    lock, tried = locks.lock, []

    def first_loses(descriptor, **options):
        tried.append(descriptor)
        if len(tried) == 1:
            (path,) = tmp_path.iterdir()
            path.unlink()
            if taken == "locked":
                raise BlockingIOError
        lock(descriptor, **options)

    monkeypatch.setattr(locks, "lock", first_loses)
    with replacing(tmp_path / "file", tidy=False) as new:
        new.write_text("new")
    assert len(tried) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    left = left_in(tmp_path, "file")
    monkeypatch.setattr(locks, "fcntl", None)
    for available in (True, False):  # no locks of the file system; none of the platform
        monkeypatch.setattr(locks, "AVAILABLE", available)
        with replacing(tmp_path / "file") as new:
            new.write_text("new")
        assert (tmp_path / "file").read_text() == "new"
    assert left.exists()


def test_contents_are_on_disk_before_the_name_and_the_name_before_the_block_ends(
    tmp_path, monkeypatch
):
    done, sync, move = [], os.fsync, os.replace

    def synced(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "contents")
        sync(descriptor)

    def moved(*paths):
        done.append("name")
        move(*paths)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    with replacing(tmp_path / "file") as new:
        new.write_text("new")
        assert done == []
    assert done == ["contents", "name", "folder"]


def test_what_cannot_be_a_lock_is_closed_again(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    before = os.dup(0)
    os.close(before)
    for _ in range(3):
        with pytest.raises(Unreadable, match="named pipe"):
            locks.opened(tmp_path / "pipe")
    after = os.dup(0)
    os.close(after)
    assert after == before  # the lowest number that is free


def test_a_lock_is_of_the_file_that_is_at_its_path_now(tmp_path):
    path = tmp_path / "lock"
    descriptor = locks.opened(path)
    try:
        assert locks.is_at(descriptor, path)
        path.unlink()
        assert not locks.is_at(descriptor, path)
        path.touch()
        assert not locks.is_at(descriptor, path)
    finally:
        os.close(descriptor)


def reading(**options):
    """A constructor with these options."""


def test_a_stamp_changes_with_whatever_changes_in_a_file(tmp_path):
    path, times = tmp_path / "table", (1_000_000_000, 1_000_000_000)

    def stamp(text, at=times, move=False):
        target = tmp_path / "new" if move else path
        target.write_text(text)
        os.utime(target, ns=at)
        target.rename(path)
        (found,) = stamps_of(partial(reading, path=str(path)))
        return found

    first = stamp("123")
    assert stamp("123") == first
    found = {first, stamp("1234"), stamp("123", (times[0], times[1] + 1)), stamp("123", move=True)}
    assert len(found) == 4


def test_files_are_stamped_in_folders_and_in_constructors_inside(tmp_path):
    names = ["a", "inner", "inner/b"]
    (tmp_path / "inner").mkdir()
    for name in names:
        (tmp_path / name).touch()
    folder = partial(reading, path=tmp_path)
    for source in (folder, partial(reading, around=folder, delta=0.1)):
        assert [stamp.path for stamp in stamps_of(source)] == [str(tmp_path / x) for x in names]
    assert not [*stamps_of(reading), *stamps_of(partial(reading, path=3, other=str(tmp_path)))]
    assert not [*stamps_of(partial(reading, path=tmp_path / "nothing"))]


def test_the_stored_name_of_an_algorithm_does_not_depend_on_its_folder():
    assert stored_name(jb.lingape) == "jaxbandits.algorithms.lingape.lingape"
    assert stored_name(jb.instances.soare) == "jaxbandits.instances.named.soare"
