"""Import: the records of a file become the events of a session; a second time, only what is new.

A record's key is the name of the format and the index of the record (in one JSON document: the path to it).
Records that are there already are compared, never written again; one that has changed is a conflict and is
left as it was. A batch is some hundred records in one commit, and a record is never split over two; so an
import that was interrupted goes on where it stopped, as it does with a file that has grown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.errors import (
    InvalidSessionIdError,
    KeyConflictError,
    SealogError,
    SessionExistsError,
    SessionNotFoundError,
    StorageFullError,
    StoreClosedError,
    StoreReadOnlyError,
)
from ..storage.header import check_session_id
from .errors import FileNameError, NotAnImportError, UnknownFormatError
from .jsontext import storable
from .known import Known
from .pages import time_text
from .registry import ARCHIVES, detect_archive, detect_format, find_archive, find_reader
from .reports import Conflict, ImportReport, Problem
from .source import Source

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from ..actors.session import Session
    from ..actors.store import Store
    from .archives import Archive, Unit
    from .records import Entry, Transcript

    Progress = Callable[[int, int], None]

__all__ = ["Conflict", "ImportReport", "Problem", "import_directory", "import_file"]

BATCH_RECORDS: Final = 256
BATCH_BYTES: Final = 4 * 1024 * 1024
OTHER_FILE_CONFLICTS: Final = 3
"""So many changed records before the first known one, and the file is taken for another of the same name."""


def import_file(
    store: Store,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 — what it is called everywhere
    session_id: str | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a file, or what is new in it.

    Args:
        store: where to.
        path: of the file. For a folder of sessions call `import_directory`; this takes a file of one.
        format: name of the format; told from the content if left out.
        session_id: of the session; the file's name without its ending if left out.
        progress: called now and then with how many bytes are done and how many there are.

    Returns:
        What was added, known, changed and wrong.

    Raises:
        UnknownFormatError: no format fits, or none has that name; nothing was written.
        FileNameError: the file's name makes no session id; nothing was written.
        InvalidSessionIdError: `session_id` is none; nothing was written.
        NotAnImportError: a session of the file's name holds other events, or the import of another file;
            nothing was written.
        ValueError: the path is a folder of more or less than one session.
        OSError: the file cannot be read.
        SealogError: whatever appending raises. What was committed stays; import the file again to go on.
    """
    source = Source(path, store)
    archive = detect_archive(source) if format is None else find_archive(format)
    if archive is not None:
        return _import_unit(store, source, archive, session_id, progress)
    module = detect_format(source) if format is None else find_reader(format)
    transcript = module.read(source)
    chosen = session_id
    if chosen is None:
        chosen = source.stem if transcript.session_id is None else transcript.session_id
    try:
        check_session_id(chosen)
    except InvalidSessionIdError:
        if session_id is not None:
            raise
        raise FileNameError(source.path, chosen) from None
    importer = _Importer(store, source, module.NAME, chosen, progress)
    report = importer.run(transcript, named=session_id is not None)
    for related in transcript.related:
        labels = related.labels | {"parent": chosen}
        read = module.read(related.source)
        inner = msgspec.structs.replace(read, labels=read.labels | labels, related=())
        other = _Importer(store, related.source, module.NAME, chosen + related.suffix, progress)
        try:
            report.related.append(other.run(inner, named=True))
        except (OSError, InvalidSessionIdError, NotAnImportError) as error:
            if isinstance(error, SealogError) and isinstance(error, OSError):
                raise  # the store's trouble, not the file's
            report.add_problem(0, f"{related.source.path} was not imported: {error}")
    return report


def import_directory(
    store: Store,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 — what it is called everywhere
    session_id: str | None = None,
    progress: Progress | None = None,
) -> Iterator[ImportReport]:
    """Import all sessions of a folder, one at each step; a second time, only what is new.

    A session that cannot be imported is reported, with `error`, and the others are imported all the same.

    Args:
        store: where to.
        path: of the folder, or of the file of one of its sessions.
        format: `ksessionlog`, `harness-state` or `acp-state`; told from the content if left out, which only
            `ksessionlog` can be.
        session_id: what to call the session, if there is only one; for the two others the key of it, which
            may be any string.
        progress: called after each session with how many bytes are done and how many there are.

    Returns:
        An iterator that imports a session at each step and gives its report.

    Raises:
        UnknownFormatError: the format is none of folders.
        ValueError: `session_id` is given, and there is not exactly one session.
        OSError: the folder cannot be read.
        StorageFullError, StoreClosedError, StoreReadOnlyError: from a step; no session can be imported.
    """
    source = Source(path, store)
    archive = detect_archive(source) if format is None else find_archive(format)
    if archive is None:
        raise UnknownFormatError(
            source.path if format is None else repr(format),
            "no format of folders fits",
            [module.NAME for module in ARCHIVES],
        )
    units = archive.units(source)
    if session_id is not None:
        _check_single(source, units)
    return _import_units(store, archive, units, session_id, progress)


def _check_single(source: Source, units: list[Unit]) -> None:
    if len(units) != 1:
        msg = f"{source.path} holds {len(units):,} sessions, not one; import_directory() takes them all"
        raise ValueError(msg)


def _import_unit(
    store: Store, source: Source, archive: Archive, session_id: str | None, progress: Progress | None
) -> ImportReport:
    units = archive.units(source)
    _check_single(source, units)
    report = archive.take(store, units[0], session_id)
    if progress is not None:
        progress(units[0].size_bytes, units[0].size_bytes)
    return report


def _import_units(
    store: Store, archive: Archive, units: list[Unit], session_id: str | None, progress: Progress | None
) -> Iterator[ImportReport]:
    done, total = 0, sum(unit.size_bytes for unit in units)
    for unit in units:
        try:
            report = archive.take(store, unit, session_id)
        except (StorageFullError, StoreClosedError, StoreReadOnlyError):
            raise
        except (SealogError, OSError) as error:
            report = ImportReport(session_id or "", archive.NAME, source=unit.path, error=str(error))
        done += unit.size_bytes
        if progress is not None:
            progress(done, total)
        yield report


class _Importer:
    """One file on its way into one session."""

    def __init__(
        self, store: Store, source: Source, format_name: str, session_id: str, progress: Progress | None
    ) -> None:
        self._store = store
        self._source = source
        self._progress = progress
        self._session: Session | None = None
        self._header: dict[str, Any] = {}
        self._known = Known(format_name)
        self._batch: list[Entry] = []
        self._batch_bytes = 0
        self._offset = 0
        self._first_at: int | None = None
        self._report = ImportReport(session_id, format_name)

    def run(self, transcript: Transcript, *, named: bool) -> ImportReport:
        """Import all records.

        Args:
            transcript: what the format read.
            named: whether the caller has chosen the session.
        """
        report = self._report
        labels = {"format": report.format, "file": self._source.name} | transcript.labels
        self._header = {
            "labels": {name: storable(value) for name, value in labels.items()},
            "created_at": transcript.created_at,
        }
        self._source.forget()
        try:
            self._open_existing(named=named)
            before = len(self._known)
            for entry in transcript.entries:
                self._take(entry)
            self._flush()
            self._opened()
        finally:
            if self._session is not None:
                self._session.close()
        missing = before - report.known - report.conflicting
        if missing > 0:
            report.add_problem(
                0, f"{missing:,} records that were imported before are not in the file any more"
            )
        self._tell(self._source.size_bytes)
        return report

    def _open_existing(self, *, named: bool) -> None:
        try:
            session = self._store.open_session(self._report.session_id)
        except SessionNotFoundError:
            return
        self._session = session.__enter__()
        self._known.read_on(session)
        is_import = session.header.labels.get("format") == self._report.format or len(self._known)
        if not named and not is_import and self._known.events:
            reason = f"holds no {self._report.format} import"
            raise NotAnImportError(session.session_id, self._source.path, reason)

    def _opened(self) -> Session:
        """Return the session, made now if there is none: not before there is something to put into it."""
        if self._session is None:
            created_at = self._header["created_at"] or time_text(self._first_at) or None
            try:
                session = self._store.create_session(
                    self._report.session_id, created_at, self._header["labels"]
                )
            except SessionExistsError:  # another import of the file was faster
                session = self._store.open_session(self._report.session_id)
            self._session = session.__enter__()
        return self._session

    def _take(self, entry: Entry) -> None:
        report = self._report
        report.records += 1
        if self._first_at is None:
            self._first_at = entry.events[0].at
        if entry.problem is not None:
            report.add_problem(entry.line, entry.problem)
        if not self._is_new(entry):
            if not report.records % BATCH_RECORDS:
                self._tell(entry.offset)
            return
        if not report.known and report.conflicting >= OTHER_FILE_CONFLICTS:
            reason = f"none of the first {report.conflicting} records is the same: it is of another file"
            raise NotAnImportError(report.session_id, self._source.path, reason)
        if entry.files:
            self._flush()
            session = self._opened()
            for file in entry.files:
                count = len(session)
                position = session.attach(
                    file.source,
                    file_name=file.file_name,
                    media_type=file.media_type,
                    text=file.text,
                    key=file.key,
                )
                self._known.skip(position, position + 1)
                report.attachments += position >= count
                report.events += position >= count
        elif self._batch_bytes + entry.size_bytes > BATCH_BYTES:
            self._flush()
        self._batch.append(entry)
        self._batch_bytes += entry.size_bytes
        if len(self._batch) >= BATCH_RECORDS:
            self._flush()

    def _is_new(self, entry: Entry) -> bool:
        standing = self._known.standing(entry)
        self._report.known += standing == "known"
        if standing == "changed":
            self._report.add_conflict(entry.number, entry.line)
        return standing == "new"

    def _tell(self, offset: int) -> None:
        """Report progress, which never goes back; a file that is still growing ends where it did at first."""
        self._offset = max(self._offset, min(offset, self._source.size_bytes))
        if self._progress is not None:
            self._progress(self._offset, self._source.size_bytes)

    def _flush(self) -> None:
        """Append the batch. If another import of the file has been faster, leave out what it has appended."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        conflict: KeyConflictError | None = None
        while batch:
            session = self._opened()
            if len(session) != self._known.events:
                self._known.read_on(session)
                batch = [entry for entry in batch if self._is_new(entry)]
            elif conflict is not None:
                raise conflict
            try:
                positions = session.append_many([event for entry in batch for event in entry.events])
            except KeyConflictError as error:
                conflict = error
                continue
            self._known.skip(positions.start, positions.stop)
            self._report.added += len(batch)
            self._report.events += len(positions)
            if batch:
                self._tell(batch[-1].offset)
            return
