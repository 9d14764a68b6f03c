"""Which files `sealog import` takes, found before anything is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..formats import UnknownFormatError
from ..formats.registry import detect_archive, detect_format, find_archive, find_reader
from ..formats.source import Source
from .messages import said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..formats import Archive, Reader

__all__ = ["Plan", "Planned", "plan_import"]

_NAMED_MAX = 5


class Planned(msgspec.Struct, frozen=True):
    """A file or folder to import.

    Args:
        path: where it is.
        format_name: name of its format.
        is_archive: whether it may hold many sessions.
    """

    path: Path
    format_name: str
    is_archive: bool = False


class Plan(msgspec.Struct):
    """What an import is going to do.

    Args:
        files: what to import, in order.
        passed_over: files in folders that fit no format.
        refused: why others are not imported, one line each.
    """

    files: list[Planned] = []
    passed_over: list[Path] = []
    refused: list[str] = []


class _Candidate(msgspec.Struct):
    planned: Planned
    session_ids: set[str]
    related: set[str]


def plan_import(paths: Iterable[Path], format_name: str | None) -> Plan:
    """Look at files and folders, and decide what is imported.

    Args:
        paths: as the user named them.
        format_name: of all files; told from the content of each if it is None.

    Raises:
        UnknownFormatError: no format has that name.
    """
    archive = find_archive(format_name)
    wanted = None if format_name is None or archive is not None else find_reader(format_name)
    plan = Plan()
    found: dict[str, _Candidate] = {}
    for path in paths:
        candidates = _candidates(path, wanted, plan) if archive is None else _archived(path, archive, plan)
        for candidate in candidates:
            found.setdefault(os.path.realpath(candidate.planned.path), candidate)
    # The file of a subagent goes with its main file, and not again as a session of its own.
    claimed = {place for candidate in found.values() for place in candidate.related}
    kept = [candidate for place, candidate in found.items() if place not in claimed]
    _refuse_same(kept, plan)
    return plan


def _refuse_same(candidates: list[_Candidate], plan: Plan) -> None:
    """Take all candidates but those that would be mixed into one session."""
    by_id: dict[str, list[Path]] = {}
    for candidate in candidates:
        for session_id in candidate.session_ids:
            by_id.setdefault(session_id, []).append(candidate.planned.path)
    mixed: dict[tuple[Path, ...], str] = {}
    for session_id, found in by_id.items():
        if len(found) > 1:
            mixed.setdefault(tuple(found), session_id)
    for paths, session_id in mixed.items():
        names = ", ".join(map(str, paths[:_NAMED_MAX]))
        more = f" and {len(paths) - _NAMED_MAX:,} more" if len(paths) > _NAMED_MAX else ""
        plan.refused.append(
            f"{names}{more} would all be session {session_id!r}; import them one by one, with --as"
        )
    refused = {path for paths in mixed for path in paths}
    plan.files = [one.planned for one in candidates if one.planned.path not in refused]


def _archived(path: Path, archive: Archive, plan: Plan) -> Iterator[_Candidate]:
    """Yield a folder of sessions whose format the user has named."""
    try:
        Source(path)
    except (OSError, ValueError) as error:
        plan.refused.append(_refusal(path, error))
        return
    yield _Candidate(Planned(path, archive.NAME, is_archive=True), set(), set())


def _candidates(path: Path, wanted: Reader | None, plan: Plan) -> Iterator[_Candidate]:
    """Yield what a path of the user stands for: itself, or what is in a folder."""
    try:
        source = Source(path)
        if not source.is_directory:
            found = _candidate(source, wanted, named=True)
            yield found or _reader_candidate(source, detect_format(source))
            return
    except (OSError, ValueError) as error:
        plan.refused.append(_refusal(path, error))
        return
    for place in _below(path, plan, archives=wanted is None):
        try:
            found = _candidate(Source(place), wanted, named=False)
        except (OSError, ValueError) as error:
            plan.refused.append(_refusal(place, error))
        else:
            if found is None:
                plan.passed_over.append(place)
            else:
                yield found


def _candidate(source: Source, wanted: Reader | None, *, named: bool) -> _Candidate | None:
    """Return a file or folder as it is to be imported; None if no format fits.

    Args:
        source: the file or folder.
        wanted: the format that the user has named.
        named: the user has named the file too, so that is its format whatever is in it.
    """
    if wanted is not None:
        return _reader_candidate(source, wanted) if named or wanted.detect(source) else None
    archive = detect_archive(source)
    if archive is not None:
        ids = {Path(unit.path).stem for unit in archive.units(source)}
        return _Candidate(Planned(Path(source.path), archive.NAME, is_archive=True), ids, set())
    try:
        return _reader_candidate(source, detect_format(source))
    except UnknownFormatError:
        return None


def _reader_candidate(source: Source, reader: Reader) -> _Candidate:
    transcript = reader.read(source)
    related = {os.path.realpath(other.source.path) for other in transcript.related}
    planned = Planned(Path(source.path), reader.NAME)
    return _Candidate(planned, {transcript.session_id or source.stem}, related)


def _below(folder: Path, plan: Plan, *, archives: bool) -> Iterator[Path]:
    """Yield the files below a folder, and the folders of sessions, whose files are not looked at.

    Hidden ones and links to folders are left out.
    """

    def note(error: OSError) -> None:
        plan.refused.append(_refusal(folder, error))

    for place, folders, files in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if archives and detect_archive(Source(place)) is not None:
            yield Path(place)
            continue
        for name in sorted(files):
            path = Path(place, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _refusal(path: Path, error: Exception) -> str:
    text = said(error)
    return text if str(path) in text else f"{path}: {text}"
