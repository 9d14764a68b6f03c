"""Progress on standard error: only where somebody watches, gone when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from .output import err, out

if TYPE_CHECKING:
    from collections.abc import Callable


def new_progress(*, prints_meanwhile: bool = False) -> Progress:
    """Return a display of progress; silent where standard error is no terminal.

    Args:
        prints_meanwhile: the command prints as it goes on: on a terminal that is progress enough.
    """
    watched = err()
    disabled = not watched.is_terminal or (prints_meanwhile and out().is_terminal)
    watched.quiet = disabled  # some versions of rich end even what was never shown with an empty line
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=watched,
        transient=True,
        disable=disabled,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def byte_meter(bar: Progress, description: str) -> Callable[[int, int], None]:
    """Return a function that is told how much is done and how much there is."""
    task = bar.add_task(description, total=None)

    def tell(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total or None)

    return tell
