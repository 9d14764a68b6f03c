"""All formats. A new one is a module with the same functions, and one line here.

A module that can be imported from has `detect` and `read`; every module has `write`. The order is that of
detection: the most particular first, and JSON Lines, which fit any JSON object a line, last.

Formats that keep many sessions in one folder are archives: they import and export a session at a time, and
each has an object that does what `Archive` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from . import claude_code, codex, html_page, jsonl, ksession_store, markdown, openai_chat, swe_agent
from .errors import UnknownFormatError
from .state_files import ACP_STATE, HARNESS_STATE

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from .archives import Archive
    from .records import Transcript
    from .source import Source
    from .target import Target, Written

__all__ = [
    "ARCHIVES",
    "READERS",
    "WRITERS",
    "Reader",
    "Writer",
    "detect_archive",
    "detect_format",
    "find_archive",
    "find_reader",
    "find_writer",
]


class Writer(Protocol):
    """A module that writes a session."""

    @property
    def NAME(self) -> str:  # noqa: N802 — a constant of the module
        """What the format is called."""
        ...

    @property
    def SUFFIX(self) -> str:  # noqa: N802
        """How names of its files end."""
        ...

    def write(self, session: ReadableSession, target: Target) -> Written:
        """Write a session to the file or the folder that the target gives."""
        ...


class Reader(Writer, Protocol):
    """A module that also reads what other programs have written."""

    def detect(self, source: Source) -> bool:
        """Tell from the content whether a source is of this format."""
        ...

    def read(self, source: Source) -> Transcript:
        """Read the records of a source, streaming."""
        ...


READERS: Final[tuple[Reader, ...]] = (
    claude_code,
    codex,
    swe_agent,
    openai_chat,
    jsonl,
)
ARCHIVES: Final[tuple[Archive, ...]] = (
    ksession_store,
    HARNESS_STATE,
    ACP_STATE,
)
WRITERS: Final[tuple[Writer, ...]] = (
    *READERS,
    *ARCHIVES,
    markdown,
    html_page,
)


def detect_format(source: Source) -> Reader:
    """Return the format of a source, from its content.

    Raises:
        UnknownFormatError: none fits.
        OSError: the source cannot be read.
    """
    for module in READERS:
        if module.detect(source):
            return module
    reason = "no format fits its content; name one with format="
    if not source.is_directory and not source.size_bytes:
        reason = "the file is empty; name its format with format="
    raise UnknownFormatError(source.path, reason, _importable())


def _importable() -> list[str]:
    return [reader.NAME for reader in READERS] + [archive.NAME for archive in ARCHIVES]


def detect_archive(source: Source) -> Archive | None:
    """Return the format of a folder of sessions, or of a file from one; None if it is no such thing.

    Raises:
        OSError: the source cannot be read.
    """
    return next((module for module in ARCHIVES if module.detect(source)), None)


def find_archive(name: str | None) -> Archive | None:
    """Return the format of a name, if it keeps many sessions in one folder; None if it does not."""
    return next((module for module in ARCHIVES if name == module.NAME), None)


def find_reader(name: str) -> Reader:
    """Return the format of a name, to import.

    Raises:
        UnknownFormatError: none that can be imported has it.
    """
    for module in READERS:
        if name == module.NAME:
            return module
    raise UnknownFormatError(repr(name), "nothing can be imported from that", _importable())


def find_writer(name: str) -> Writer:
    """Return the format of a name, to export.

    Raises:
        UnknownFormatError: none has it.
    """
    for module in WRITERS:
        if name == module.NAME:
            return module
    raise UnknownFormatError(repr(name), "no format has that name", [m.NAME for m in WRITERS])
