"""Packages that only some parts of the package need, and what to install where one is missing."""

import contextlib
from collections.abc import Generator

EXTRA: str = "sweep"  # of pyproject.toml, which brings them all
PACKAGES: frozenset[str] = frozenset(
    {"click", "rich", "xarray", "pandas", "h5netcdf", "h5py", "matplotlib", "jinja2"}
)


@contextlib.contextmanager
def needed_by(what: str) -> Generator[None]:
    """Import in this block what `what` needs besides the core dependencies.

    Raises:
      ModuleNotFoundError: names the missing package and the command that installs it.

    >>> with needed_by("the figure"):
    ...     import matplotlib
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES:
            raise
        message = f"{what} needs {package}: pip install 'jaxbandits[{EXTRA}]'"
        raise ModuleNotFoundError(message, name=error.name) from None
