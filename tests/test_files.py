"""Files are written completely or not at all, also by several threads."""

import stat
import threading

from run_settings import child

import jaxbandits as jb
from jaxbandits.system.files import replacing
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


def test_the_stored_name_of_an_algorithm_does_not_depend_on_its_folder():
    assert stored_name(jb.lingape) == "jaxbandits.algorithms.lingape.lingape"
    assert stored_name(jb.instances.soare) == "jaxbandits.instances.named.soare"
