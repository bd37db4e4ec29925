"""Progress of a sweep: a bar on a terminal, a line per cell elsewhere."""


class Display:
    """A context that shows which cell is running and how far it is."""

    def __init__(self, num_cells, shown):
        self._num_cells, self._finished, self._bar = num_cells, 0, None
        if shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeElapsedColumn as Elapsed

            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
            self._console = Console(stderr=True, highlight=False, soft_wrap=True)
            self._bar = Progress(*columns, Elapsed(), console=self._console, transient=True)
            self._task = None

    def __enter__(self):
        if self._bar is not None and self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_):
        if self._bar is not None and self._console.is_terminal:
            self._bar.stop()

    def start(self, title):
        """A callable `(done, total)` for the cell of that title."""
        if self._bar is None:
            return False
        task = self._bar.add_task(f"{self._finished + 1}/{self._num_cells} {title}", total=None)
        self._task = task
        return lambda done, total: self._bar.update(task, completed=done, total=total)

    def finish(self, title, runs, reused):
        """Note that a cell is done."""
        self._finished += 1
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        how = "stored before" if reused else f"{runs.meta.get('seconds', 0):.1f} s"
        count = f"{self._finished}/{self._num_cells}"
        self._console.print(f"{count} {title}: {len(runs)} replications, {how}", markup=False)
