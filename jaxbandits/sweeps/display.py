"""Progress of a sweep: two bars on a terminal, a line per cell elsewhere."""

LEAST_TITLE, NUMBERS = 12, 55  # columns of a terminal: for a title, and for all beside it
MANY = 1000  # cells that take long enough to check for a user to wonder


class Display:
    """A context that shows how many cells are done, and how far the running one is."""

    def __init__(self, num_cells, shown):
        self._num_cells, self._finished, self._bars = num_cells, 0, None
        if shown:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )

            self._console = Console(stderr=True, highlight=False, soft_wrap=True)
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._cells = self._bars.add_task("cells", total=num_cells)
            self._running = self._bars.add_task("replications", total=None)

    def __enter__(self):
        if self._bars is not None and self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_):
        if self._bars is not None and self._console.is_terminal:
            self._bars.stop()

    def start(self, title, replications):
        """A callable `(done, total)` for so many replications of the cells of that title."""
        if self._bars is None:
            return lambda done, total: None
        room = max(LEAST_TITLE, self._console.width - NUMBERS)
        title = title if len(title) <= room else title[: room - 1] + "…"
        self._bars.reset(self._running, description=title, total=replications)

        def report(done, total):
            if done is not None:
                self._bars.update(self._running, completed=done, total=total)

        return report

    def finish(self, title, runs, reused):
        """Note that a cell is done."""
        self._finished += 1
        if self._bars is None:
            return
        self._bars.update(self._cells, completed=self._finished)
        how = "stored before" if reused else f"{runs.meta.get('seconds', 0):.1f} s"
        count = f"{self._finished}/{self._num_cells}"
        self._console.print(f"{count} {title}: {len(runs)} replications, {how}", markup=False)


def checking(number):
    """A callable `(done, total)` for the check of so many cells, or None where it is soon over."""
    if number < MANY:
        return None
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.print(f"checking {number:,} cells")
        return lambda done, total: None
    bars = Progress(console=console, transient=True)
    task = bars.add_task("checking cells", total=number)
    bars.start()

    def report(done, total):
        if done is None:
            bars.stop()
        else:
            bars.update(task, completed=done)

    return report
