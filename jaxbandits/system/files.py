"""Files that are there whole or not at all."""

import contextlib
import os
import secrets
from pathlib import Path


@contextlib.contextmanager
def replacing(path):
    """A new file beside `path` that takes its place when the block ends, on disk by then.

    Where the block raises, `path` is as it was and the new file is gone. Errors of the system, such
    as a full disk, name `path`.
    """
    path = Path(path)
    try:
        temporary = new_beside(path)
        try:
            yield temporary
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno is not None and Path(str(error.filename or path)).parent == path.parent:
            error.filename = str(path)  # not the new file, which nobody knows
        raise


# Modules that have another name in what was stored before they were renamed.
FORMER_MODULES = {
    "jaxbandits.instances.contextual": "jaxbandits.instances.shown",
    "jaxbandits.instances.data.local_files": "jaxbandits.instances.data",
    "jaxbandits.instances.instance": "jaxbandits.instances.base",
    "jaxbandits.instances.papers": "jaxbandits.instances.named",
    "jaxbandits.instances.synthetic": "jaxbandits.instances.made_up",
}


def stored_name(function):
    """What files call a function: the module and name it had when such files were first written.

    What was stored is found again when algorithms are put in another order. A constructor around
    another, `outer` of `inner`, is called by the names of both.
    """
    if hasattr(function, "inner"):
        return f"{function.outer}({stored_name(function.inner)})"
    module = FORMER_MODULES.get(function.__module__, function.__module__)
    *folders, file = module.split(".")
    if folders[:2] == ["jaxbandits", "algorithms"]:
        folders = folders[:2]
    name = getattr(function, "__qualname__", "<object>")
    return ".".join([*folders, file, name])


def new_beside(path):
    """An empty file under a name of its own, as readable as any that the user creates."""
    # Not `tempfile`, whose files are private: to open them up, the umask would have to be read,
    # which means to change it under the feet of other threads.
    while True:
        temporary = path.parent / f".{path.name[:40]}-{secrets.token_hex(4)}.partial"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return temporary


def _sync_folder(folder):
    """So that the new name outlives a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
