"""Tables that start to print at once, however many rows there are, and fit any width."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from rich.cells import cell_len, chop_cells, set_cell_size

from .output import painted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

__all__ = ["Cell", "Column", "print_columns"]

Cell = tuple[str, str]
"""Clean text and its style."""

_BLOCK_ROWS: Final = 500
_GAP: Final = 2
_FOLD_MIN: Final = 12


class Column(msgspec.Struct, frozen=True):
    """A column of a table. The first one folds rather than loses characters, and is always there.

    Args:
        name: its heading.
        right: aligned to the right.
        clip_to: where there is no room it is cut, to no less than this; 0 if it may not be cut.
        drop: where there still is no room, columns with the highest number go first; 0 stays.
    """

    name: str
    right: bool = False
    clip_to: int = 0
    drop: int = 0


def print_columns(console: Console, columns: list[Column], rows: Iterable[list[Cell]]) -> None:
    """Print rows in columns as wide as the first few hundred rows need, later ones wider if they must be.

    Args:
        console: tells width and colours.
        columns: of the table.
        rows: of clean, one-line cells; nothing is printed if there are none.
    """
    source = iter(rows)
    block = list(islice(source, _BLOCK_ROWS))
    if not block:
        return
    shown, widths = _fit(console.width, columns, _widths(columns, block))
    headings = [(columns[at].name, "bold") for at in shown]
    kept = [columns[at] for at in shown]
    _print_row(console, kept, widths, headings)
    while block:
        for row in block:
            _print_row(console, kept, widths, [row[at] for at in shown])
        block = list(islice(source, _BLOCK_ROWS))
        found = _widths(kept, [[row[at] for at in shown] for row in block])
        for at, column in enumerate(kept):
            room = console.width - sum(widths) - _GAP * (len(widths) - 1)
            more = max(found[at] - widths[at], 0)
            if at and (not column.clip_to or room >= more):
                widths[at] += more


def _widths(columns: list[Column], block: list[list[Cell]]) -> list[int]:
    return [
        max([cell_len(column.name), *(cell_len(row[at][0]) for row in block)])
        for at, column in enumerate(columns)
    ]


def _fit(width: int, columns: list[Column], natural: list[int]) -> tuple[list[int], list[int]]:
    """Return which columns there is room for, and how wide they are."""
    shown = list(range(len(columns)))
    while True:
        widths = [natural[at] for at in shown]
        excess = sum(widths) + _GAP * (len(widths) - 1) - width
        for at, index in enumerate(shown):
            if excess > 0 and columns[index].clip_to:
                cut = max(min(excess, widths[at] - columns[index].clip_to), 0)
                widths[at] -= cut
                excess -= cut
        folded = max(widths[0] - max(excess, 0), min(widths[0], _FOLD_MIN))
        excess -= widths[0] - folded
        droppable = [index for index in shown if columns[index].drop]
        # An id is folded only where nothing more can be left out.
        if (excess <= 0 and folded == widths[0]) or not droppable:
            widths[0] = folded
            return shown, widths
        shown.remove(max(droppable, key=lambda index: columns[index].drop))


def _print_row(console: Console, columns: list[Column], widths: list[int], row: list[Cell]) -> None:
    parts: list[str] = []
    first, *more = list(_folded(row[0][0], widths[0]))
    for at, (column, (text, style)) in enumerate(zip(columns, row, strict=True)):
        shown = first if at == 0 else _clipped(text, widths[at]) if column.clip_to else text
        space = " " * (widths[at] - cell_len(shown))
        paint = painted(console, shown, style)
        parts.append(space + paint if column.right else paint + space)
    sys.stdout.write((" " * _GAP).join(parts).rstrip(" ") + "\n")
    for text in more:
        sys.stdout.write(painted(console, text, row[0][1]) + "\n")


def _folded(text: str, width: int) -> Iterator[str]:
    if cell_len(text) <= width:
        yield text
    else:
        yield from chop_cells(text, width)


def _clipped(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
