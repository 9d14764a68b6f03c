"""The transcripts that the demo replays: every line becomes an event, whatever it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from ...storage.errors import InvalidEventError
from ...storage.events import TEXT_BYTES_MAX, encode_event
from .transcript import kind_and_text
from .turns import Record

INPUT_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much of the transcripts is read; the demo keeps it in memory."""
LINE_BYTES_MAX: Final = TEXT_BYTES_MAX // 8
"""Longer lines are left out: escaped, they must still fit an event."""


class Transcript(NamedTuple):
    """The records of one file."""

    path: Path
    records: list[Record]
    skipped: int
    """Lines that are too long, or behind what is read at most."""


def find_transcripts(inputs: list[Path]) -> list[Path]:
    """Return the given files, and the *.jsonl files of given folders."""
    found: list[Path] = []
    for path in inputs:
        found.extend(sorted(path.rglob("*.jsonl")) if path.is_dir() else [path])
    return found


def read_transcript(path: Path, bytes_max: int = INPUT_BYTES_MAX) -> Transcript:
    """Read a JSON Lines file; every line becomes an event, whatever it holds.

    Args:
        path: of the file.
        bytes_max: how much of it to read.

    Raises:
        OSError: it cannot be read.
    """
    records: list[Record] = []
    skipped = 0
    with path.open("rb") as file:
        for line in file:
            body = line.removeprefix(b"\xef\xbb\xbf").strip()
            bytes_max -= len(line)
            if bytes_max < 0 or len(body) > LINE_BYTES_MAX:
                skipped += 1
            elif body:
                records.append(record_of_line(body))
    return Transcript(path, records, skipped)


def record_of_line(line: bytes) -> Record:
    """Return the event for one line: the decoded record if it can be stored, else the line as it is."""
    try:
        value = json.loads(line)
        record = Record(*kind_and_text(value), value)
        encode_event(record.kind, record.text, record.data, 0, None)
    except (ValueError, RecursionError, InvalidEventError):
        return _raw_record(line)
    return record


def _raw_record(line: bytes) -> Record:
    try:
        return Record("transcript.raw", line.decode(), None)
    except UnicodeDecodeError:
        return Record("transcript.raw", line.decode(errors="backslashreplace"), {"line": line})


def mean_size(records: list[Record]) -> int:
    """Return the mean size of the events on disk, for a fair comparison."""
    sizes = [len(encode_event(*record, 0, None)) for record in records]
    return max(1, sum(sizes) // max(1, len(sizes)))
