"""Errors of the library in words of the command line: what they advise to call has another name here."""

from __future__ import annotations

from typing import Final

__all__ = ["ADVICE", "said"]

ADVICE: Final = {
    "create it with create_session(), or check the id with session_ids()": "'sealog ls' lists the sessions",
    "open it with open_session() or choose another id": "choose another folder",
    "close it there, or read it here with read_only=True": "end that program first",
    "check the path, or make a store there first": "check the path",
    "name one with format=": "name one with --format",
    "name its format with format=": "name its format with --format",
    "import_directory() takes them all": "without --as all are imported",
    "session_id= here, --as on the command line": "--as",
}
"""What the library advises, and what a user of the command can do."""


def said(error: Exception | str) -> str:
    """Return what an error or its text says."""
    text = str(error)
    for theirs, ours in ADVICE.items():
        text = text.replace(theirs, ours)
    return text
