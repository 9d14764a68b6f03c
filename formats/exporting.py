"""Export: a session in a format of other programs, or as a page for people."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from ..storage.errors import SealogError, StoreClosedError
from .errors import UnknownFormatError
from .registry import ARCHIVES, READERS, find_archive, find_writer
from .reports import ExportReport
from .target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..actors.readable import ReadableSession
    from ..actors.store import Store
    from .archives import Archive
    from .target import Writable, Written

    Progress = Callable[[int, int], None]

__all__ = ["ExportReport", "export_directory", "export_session"]


def export_session(
    session: ReadableSession,
    target: str | os.PathLike[str] | Writable,
    *,
    format: str | None = None,  # noqa: A002 — what it is called everywhere
    overwrite: bool = False,
) -> ExportReport:
    """Write a session.

    Args:
        session: a session, sealed or not.
        target: a path, at which the export appears when it is complete; or a binary file open for writing.
            For `ksessionlog` it is the path of a new folder.
        format: name of the format; the one of the file that the session was imported from if left out, else
            JSON Lines.
        overwrite: replace a file at the path.

    Raises:
        UnknownFormatError: no format has that name.
        NotExportableError: the session has nothing in that format, or a record of it is not whole.
        AttachmentMissingError, AttachmentCorruptError: a file that belongs to a record cannot be read.
        FileExistsError: something is at the path.
        CorruptionError: an event is damaged.
        OSError: the target cannot be written.
    """
    module = find_writer(own_format(session) if format is None else format)
    with Target(target, overwrite=overwrite) as opened:
        written = module.write(session, opened)
    return _report(session.session_id, module.NAME, written)


def export_directory(
    store: Store,
    directory: str | os.PathLike[str],
    *,
    format: str,  # noqa: A002 — what it is called everywhere
    sessions: Iterable[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Iterator[ExportReport]:
    """Export sessions into one folder, as their older program keeps them, one at each step.

    A session that cannot be exported is reported, with `error`, and the others are exported all the same.
    What is there already is left alone. A `ksessionlog` that the session has outgrown is replaced by the
    longer one; anything else in the way is an error, or replaced if wanted.

    Args:
        store: where the sessions are.
        directory: the folder; made if it does not exist.
        format: `ksessionlog`, `harness-state` or `acp-state`.
        sessions: ids of the sessions. All that there are if left out; for the two others all that hold such
            a state.
        overwrite: replace what is in the way.
        progress: called after each session with how many are done and how many there are.

    Returns:
        An iterator that exports a session at each step and gives its report.

    Raises:
        UnknownFormatError: the format is none of folders.
        NotADirectoryError: something else is in the place of the folder.
        OSError: the folder cannot be made.
        StoreClosedError: also from a step.
    """
    archive = find_archive(format)
    if archive is None:
        raise UnknownFormatError(
            repr(format), "no format of folders has that name", [module.NAME for module in ARCHIVES]
        )
    path = os.fspath(directory)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, "is no folder", path)
    os.makedirs(path, mode=0o700, exist_ok=True)
    ids = archive.session_ids(store) if sessions is None else list(sessions)
    return _export_all(store, archive, ids, path, overwrite, progress)


def _export_all(
    store: Store,
    archive: Archive,
    ids: list[str],
    path: str,
    overwrite: bool,  # noqa: FBT001 — as the caller named it
    progress: Progress | None,
) -> Iterator[ExportReport]:
    for done, session_id in enumerate(ids, 1):
        try:
            written = archive.put(store, session_id, path, overwrite=overwrite)
            report = _report(session_id, archive.NAME, written)
        except StoreClosedError:
            raise
        except (SealogError, OSError) as error:
            report = ExportReport(session_id, archive.NAME, error=str(error))
        if progress is not None:
            progress(done, len(ids))
        yield report


def _report(session_id: str, format_name: str, written: Written) -> ExportReport:
    return ExportReport(
        session_id,
        format_name,
        written.records,
        written.skipped,
        written.dropped,
        written.unchanged,
        written.path,
    )


def own_format(session: ReadableSession) -> str:
    """Return the format of the file that a session was imported from; JSON Lines if there was none.

    Folders of sessions are only written when asked for: JSON Lines also take what was appended since.
    """
    label = session.header.labels.get("format")
    return label if label in {module.NAME for module in READERS} else "jsonl"
