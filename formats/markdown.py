"""Markdown for people: a heading an event, its text as it is.

Texts stand in fences longer than any fence in them, so nothing in them is markup, and no character is lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .pages import heading, shown_events, time_text, visible
from .target import Written

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .pages import Shown
    from .target import Target

__all__ = ["NAME", "SUFFIX", "write"]

NAME: Final = "markdown"
SUFFIX: Final = ".md"

_FENCE: Final = re.compile("`{3,}")
_MARKUP: Final = re.compile(r"([\\`*\[\]<>|~&])")
_SPACE: Final = re.compile(r"\s+")


def write(session: ReadableSession, target: Target) -> Written:
    """Write the whole session.

    Raises:
        NotExportableError: a record is not whole.
        OSError: the target cannot be written.
    """
    out, written = target.file(), Written()
    out.write(f"# Session {_inline(session.session_id)}\n\n".encode())
    for name, value in heading(session):
        out.write(f"- {_inline(name)}: {_inline(value)}\n".encode())
    for shown in shown_events(session):
        out.write(_block(shown).encode())
        written.records += 1
    return written


def _block(shown: Shown) -> str:
    event = shown.event
    title = " · ".join(part for part in (str(shown.position), event.kind, time_text(event.at)) if part)
    lines = [f"\n## {_inline(title)}\n"]
    attachment = shown.attachment
    if attachment is not None:
        facts = f"{attachment.file_name} ({attachment.media_type}, {attachment.size_bytes:,} bytes)"
        lines.append(f"\nFile: {_inline(facts)}, SHA-256 {attachment.sha256}\n")
    elif shown.problem is not None:
        lines.append(f"\nFile {_inline(shown.problem)}\n")
    if event.text:
        text = visible(event.text)
        longest = max((len(run) for run in _FENCE.findall(text)), default=2)
        fence = "`" * (longest + 1)
        lines.append(f"\n{fence}text\n{text}\n{fence}\n")
    return "".join(lines)


def _inline(text: str) -> str:
    """Return text on one line in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", _SPACE.sub(" ", visible(text)))
