"""The command `jaxbandits`, and `python -m jaxbandits`."""

from .system.interrupts import from_the_start

from_the_start()  # what follows imports modules, and a signal may come meanwhile

from .cli import main  # noqa: E402

if __name__ == "__main__":
    main()
