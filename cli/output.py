"""What commands print: text that cannot steer a terminal, JSON lines, tables, one-line messages.

Whatever comes from a log is data of strangers: `clean` and `json_line` let no control character through.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import sys
import time
from typing import Any, Final, Literal, NoReturn

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, of which tab and newline are dealt with apart
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder the text around them
    "\u2028\u2029\ud800-\udfff\U000e0000-\U000e007f]"  # line ends, halves of pairs, invisible tags
)
_WIDE: Final = 32_767
"""Columns of what is not a terminal: nothing is wrapped or cut for a file or the next program."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError  # for the frame around the commands, which knows the exit code


def out() -> Console:
    """Return the console on standard output."""
    return _new_console(stderr=False)


def err() -> Console:
    """Return the console on standard error, for progress; it is quiet where nobody watches."""
    return _new_console(stderr=True)


def _new_console(*, stderr: bool) -> Console:
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = _Console(color_system=system, stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


def clean(text: str, *, lines: bool = False) -> str:
    """Return text with everything escaped that could steer a terminal or fool its reader.

    Args:
        text: from anywhere.
        lines: keep line ends and tabs; without it the result is one line.
    """
    text = _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))
    return text if lines else text.replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 — what \x can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON that is safe to print; bytes become `{"base64": "…"}`."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not utf8, indent=indent, default=_json_bytes)
    return _UNSAFE.sub(_json_escape, text)


def _json_bytes(value: object) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(repr(value))
    return {"base64": base64.b64encode(value).decode()}


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(json_text(value) + "\n")


def warn(message: str) -> None:
    """Print one line on standard error, after what was printed before it."""
    flush_stdout()
    with contextlib.suppress(BrokenPipeError):
        sys.stderr.write(clean(message) + "\n")


def flush_stdout() -> None:
    """Hand over what was printed, if somebody still reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Send the rest of the output to nowhere: its reader went away, and exit would complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is not a descriptor
        pass
    finally:
        os.close(null)


def new_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return a table without frames.

    Args:
        columns: their headings; the first folds rather than loses characters.
        right: headings of those that are aligned to the right.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        aligned = name in right
        table.add_column(name, justify="right" if aligned else "left", overflow="fold", no_wrap=aligned)
    return table


def styled(text: str, style: str = "", *, lines: bool = False) -> Text:
    """Return clean text for a table or a console."""
    return Text(clean(text, lines=lines), style)


def painted(console: Console, text: str, style: str) -> str:
    """Return clean text in a style, if the console has any: for plain writes, which cost little a line."""
    if not style or not text or console.color_system is None:
        return text
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def plural(count: int, noun: str) -> str:
    """Return `1 event`, `2 events`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def size_text(size_bytes: float) -> str:
    """Return a size for people: `812 B`, `4.2 KiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:  # noqa: PLR2004
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def time_text(at_ns: int | None) -> str:
    """Return a time for people, UTC, or `-`; whatever 64 bits can hold."""
    if at_ns is None:
        return "-"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at_ns // 10**9))
    except (OverflowError, ValueError, OSError):
        return f"{at_ns} ns"
