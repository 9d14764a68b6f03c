"""What imports and exports did."""

from __future__ import annotations

from typing import Final

import msgspec

from .records import RecordNumber

__all__ = ["Conflict", "ExportReport", "ImportReport", "Problem"]

DETAILS_MAX: Final = 1_000
"""Conflicts and problems that a report names; all are counted."""


class Conflict(msgspec.Struct, frozen=True):
    """A record that is not what was imported before; the session keeps what it has.

    Args:
        record: its index, or the path to it.
        line: where it begins in the file, from 1; 0 if the file has no lines.
    """

    record: RecordNumber
    line: int


class Problem(msgspec.Struct, frozen=True):
    """Something in the file that is not as it should be; it is kept nevertheless.

    Args:
        line: where, from 1; 0 for the file as a whole.
        reason: what.
    """

    line: int
    reason: str


class ImportReport(msgspec.Struct):
    """What an import did.

    Args:
        session_id: of the session; empty with an `error` from before it was known.
        format: of the file.
        records: in the file.
        added: records that were new.
        known: records that were there.
        conflicting: records that have changed; `conflicts` names the first of them.
        events: that were appended, attachments included.
        attachments: that were attached.
        conflicts: the first thousand records that have changed.
        troubled: how many problems there were; `problems` names the first of them.
        problems: the first thousand problems.
        related: reports of files that were imported with this one, such as subagents'.
        source: the file, if it is one of those that a folder holds.
        error: why nothing more of the file was imported, if it is one of those that a folder holds; None if
            nothing went wrong.
    """

    session_id: str
    format: str
    records: int = 0
    added: int = 0
    known: int = 0
    conflicting: int = 0
    events: int = 0
    attachments: int = 0
    conflicts: list[Conflict] = []
    troubled: int = 0
    problems: list[Problem] = []
    related: list[ImportReport] = []
    source: str = ""
    error: str | None = None

    def add_problem(self, line: int, reason: str) -> None:
        """Note a problem."""
        self.troubled += 1
        if len(self.problems) < DETAILS_MAX:
            self.problems.append(Problem(line, reason))

    def add_conflict(self, number: RecordNumber, line: int) -> None:
        """Note a record that has changed."""
        self.conflicting += 1
        if len(self.conflicts) < DETAILS_MAX:
            self.conflicts.append(Conflict(number, line))


class ExportReport(msgspec.Struct):
    """What an export did.

    Args:
        session_id: of the session.
        format: that was written.
        records: that were written: records of the format, or events.
        skipped: events that the format has no place for.
        dropped: what else the format has no place for, in words: `the times of 3 events`.
        unchanged: whether all of it was there already, so that nothing was written.
        target: the file, if it is one of those that a folder holds.
        error: why the session was not exported, if it is one of several; None if it was.
    """

    session_id: str
    format: str
    records: int = 0
    skipped: int = 0
    dropped: list[str] = []
    unchanged: bool = False
    target: str = ""
    error: str | None = None
