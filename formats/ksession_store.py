"""KSESSIONLOG 0.2.1 into a store and out of it: whole folders, event for event, position for position.

An event gets the position that it has in the log, so a session is compared with its log by position, and
what is missing at its end is appended there. The format of the files is described in `ksessionlog`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from ..storage.errors import FormatError
from . import ksessionlog
from ._ksession_export import convert, put_session
from ._ksession_format import LOG_MAGIC, LOG_SUFFIX, OBJECT_SUFFIX, is_session_id
from ._ksession_import import import_session
from ._ksession_kinds import NAME
from .archives import Unit
from .errors import NotExportableError

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from ..actors.store import Store
    from .reports import ImportReport
    from .source import Source
    from .target import Target, Written

__all__ = ["NAME", "SUFFIX", "detect", "put", "read_unit", "session_ids", "take", "units", "write"]

SUFFIX: Final = ".ksessionlog"

_OBJECT_NAME: Final = re.compile(f"(.+)-(?:0|[1-9][0-9]*){re.escape(OBJECT_SUFFIX)}", re.DOTALL)


def detect(source: Source) -> bool:
    """Tell whether a file starts as a session log, or a folder has files of that name."""
    if source.is_directory:
        return any(name.endswith(LOG_SUFFIX) for name in os.listdir(source.path))
    with source.open() as file:
        return file.read(len(LOG_MAGIC)) == LOG_MAGIC


def units(source: Source) -> list[Unit]:
    """List the session logs of a folder, sorted; or the one that the source is."""
    if source.is_directory:
        folder, wanted = source.path, None
    else:
        folder, wanted = os.path.split(source.path)
    logs: dict[str, int] = {}
    objects: dict[str, int] = {}
    with os.scandir(folder or os.curdir) as entries:
        for entry in entries:
            found = _OBJECT_NAME.fullmatch(entry.name)
            if found is not None:
                objects[found[1]] = objects.get(found[1], 0) + _size(entry)
            elif entry.name == wanted or (wanted is None and entry.name.endswith(LOG_SUFFIX)):
                logs[entry.name] = _size(entry)
    by_id = sorted((name.removesuffix(LOG_SUFFIX), name, size) for name, size in logs.items())
    return [
        Unit(os.path.join(folder, name), size + objects.get(session_id, 0), name)
        for session_id, name, size in by_id
    ]


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:  # reading it will say what is wrong
        return 0


def take(store: Store, unit: Unit, name: str | None = None) -> ImportReport:
    """Import one session: its events, its objects as attachments, its seal.

    Args:
        store: where to.
        unit: the log.
        name: id of the session; that of the log if None.

    Raises:
        InvalidSessionIdError: `name` is none.
        InvalidEventError, InvalidHeaderError: sealog cannot hold the session; nothing was written.
        Everything that `ksessionlog.read` and appending raise.
    """
    found = read_unit(unit)
    return import_session(store, found, found.header.session_id if name is None else name, unit.path)


def read_unit(unit: Unit) -> ksessionlog.KSession:
    """Read the session of a log."""
    folder, file_name = os.path.split(unit.path)
    session_id = file_name.removesuffix(LOG_SUFFIX)
    if not file_name.endswith(LOG_SUFFIX) or not is_session_id(session_id):
        raise FormatError(
            unit.path,
            0,
            f"the name makes no session id ({session_id!r})",
            f"give the file the name of its session, <id>{LOG_SUFFIX}, and import it with --as to call the "
            "session otherwise",
        )
    return ksessionlog.read(folder or os.curdir, session_id)


def session_ids(store: Store) -> list[str]:
    """List all sessions of a store."""
    return store.session_ids()


def write(session: ReadableSession, target: Target) -> Written:
    """Write a session to a new folder.

    Raises:
        NotExportableError: the format cannot hold the session, or the target is no path.
        AttachmentMissingError, AttachmentCorruptError: an attachment cannot be read.
        LimitExceededError: the id is too long for the names of the files.
        OSError: the target cannot be written.
    """
    found, written = convert(session)
    try:
        folder = target.folder()
    except ValueError as error:
        raise NotExportableError(session.session_id, NAME, str(error)) from None
    ksessionlog.write(found, folder)
    return written


def put(store: Store, session_id: str, directory: str, *, overwrite: bool) -> Written:
    """Write a session to a folder that may hold others.

    What is there already in full is left alone; a log that the session has outgrown is replaced by the longer
    one. Anything else that is in the way is replaced only if wanted.

    Args:
        store: where the session is.
        session_id: which.
        directory: where to; made if it does not exist.
        overwrite: replace another session of that id.

    Raises:
        SessionExistsError: another session of that id is there; nothing was written.
        Everything that `write` and `open_session` raise.
    """
    with store.open_session(session_id) as session:
        found, written = convert(session)
    written.unchanged = not put_session(found, directory, overwrite=overwrite)
    written.path = os.path.join(directory, session_id + LOG_SUFFIX)
    return written
