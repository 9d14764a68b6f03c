"""Events as people read them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, cast

from .output import clean, json_text, painted, size_text, time_text

if TYPE_CHECKING:
    from rich.console import Console

    from ..storage.events import Event
    from .folding import Block

__all__ = ["print_block", "print_event", "print_raw", "style_of"]

_TEXT_CHARS: Final = 2_000
_ANSWER_LINES: Final = 12
_DATA_CHARS: Final = 200
_STYLES: Final = {
    "system-message": "yellow",
    "user-message": "bold cyan",
    "assistant-message": "bold green",
    "tool-call": "bold magenta",
    "tool-result": "magenta",
    "object": "blue",
    "attachment": "bold blue",
}


def style_of(kind: str) -> str:
    """Return the style of the heading of an event."""
    return "bold red" if kind.endswith("-error") else _STYLES.get(kind, "dim")


def print_block(console: Console, block: Block, *, full: bool, at_end: bool) -> None:
    """Print an event with what belongs to it.

    Args:
        console: tells colours.
        block: the event.
        full: whole texts and data.
        at_end: the part that is shown goes on to the end, so a call without a result has none.
    """
    note = "no result" if block.open and at_end else ""
    print_event(console, block.position, block.event, full=full, note=note)
    for position, answer in block.answers:
        line = f"└ {position}  {answer.kind}{_later(block.event.at, answer.at)}"
        sys.stdout.write(f"    {painted(console, clean(line), style_of(answer.kind))}\n")
        _print_body(console, answer, "      ", full=full, lines_max=_ANSWER_LINES)


def print_event(console: Console, position: int, event: Event, *, full: bool, note: str = "") -> None:
    """Print one event."""
    line = f"{position}  {event.kind}  {time_text(event.at)}"
    if event.key is not None and not _is_imported(event.data):
        line += f"  key {event.key}"
    if note:
        line += f"  ({note})"
    sys.stdout.write(painted(console, clean(line), style_of(event.kind)) + "\n")
    _print_body(console, event, "    ", full=full)


def print_raw(console: Console, position: int, event: Event) -> None:
    """Print one event as it is stored, nothing cut short."""
    line = f"{position}  {event.kind}  at {event.at} ns"
    if event.key is not None:
        line += f"  key {event.key}"
    sys.stdout.write(painted(console, clean(line), style_of(event.kind)) + "\n")
    _indent(event.text, "    ")
    if event.data is not None:
        _indent(json_text(event.data, indent=2), "    ")


def _print_body(
    console: Console, event: Event, indent: str, *, full: bool, lines_max: int | None = None
) -> None:
    _indent(event.text if full else _cut(event.text.strip("\r\n"), lines_max), indent)
    if event.kind == "attachment":
        _indent(painted(console, clean(_file_text(event.data)), "blue"), indent, is_clean=True)
        return
    data = _own_data(event.data)
    if data is not None:
        text = json_text(data, indent=2 if full else None)
        for part in (text if full else _cut_chars(text, _DATA_CHARS)).split("\n"):
            sys.stdout.write(f"{indent}{painted(console, part, 'dim')}\n")


def _indent(text: str, indent: str, *, is_clean: bool = False) -> None:
    if text:
        for part in (text if is_clean else clean(text, lines=True)).split("\n"):
            sys.stdout.write(f"{indent}{part}\n" if part else "\n")


def _is_imported(data: Any) -> bool:
    return isinstance(data, dict) and {"format", "record"} <= cast("dict[str, Any]", data).keys()


def _own_data(data: Any) -> Any:
    """Return data that says more than the text does: of an imported record that is nothing."""
    return None if _is_imported(data) else data


def _file_text(data: Any) -> str:
    if not isinstance(data, dict):
        return "a file, but its event does not describe it"
    fields = cast("dict[str, Any]", data)
    size = fields.get("size_bytes")
    size = size_text(size) if isinstance(size, int) else "size unknown"
    return f"[file {fields.get('file_name')}, {fields.get('media_type')}, {size}]"


def _later(start: int | None, end: int | None) -> str:
    if start is None or end is None or end <= start:
        return ""
    return f"  {(end - start) / 10**9:,.1f} s later"


def _cut(text: str, lines_max: int | None) -> str:
    if lines_max is not None:
        lines = text[: 2 * _TEXT_CHARS].split("\n", lines_max)
        if len(lines) > lines_max:
            kept = "\n".join(lines[:lines_max])
            if len(kept) <= _TEXT_CHARS:
                return f"{kept}\n… ({len(text) - len(kept):,} more characters)"
    return _cut_chars(text, _TEXT_CHARS)


def _cut_chars(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}… ({len(text) - chars_max:,} more characters)"
