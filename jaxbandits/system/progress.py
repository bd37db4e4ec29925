"""A progress bar where `rich` is installed, a line on standard error where it is not."""

import sys


def bar(label):
    """A callable `(done, total)`; `done` None closes the bar."""
    try:
        from rich.progress import Progress
    except ImportError:
        return _plain(label)
    display = Progress(transient=True)
    task = display.add_task(label, total=None)
    display.start()

    def report(done, total):
        if done is None:
            display.stop()
        else:
            display.update(task, completed=done, total=total)

    return report


def _plain(label):
    def report(done, total):
        end = "\n" if done is None else ""
        text = "" if done is None else f"\r{label} {done}/{total}"
        print(text, end=end, file=sys.stderr, flush=True)

    return report
