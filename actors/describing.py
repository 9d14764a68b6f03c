"""Looking at sessions: one closely, or all of them at a glance."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

import msgspec

from ..storage.directory import open_session_directory
from ..storage.errors import FormatError, SessionNotFoundError
from ..storage.glance import glance
from ..storage.recovery import QUARANTINE
from .slot import Slot, SlotState

if TYPE_CHECKING:
    from ..storage.format import Head, Receipt, SessionHeader
    from ..storage.reader import LogView
    from .runtime import Runtime

Status = Literal["ok", "torn", "damaged", "failed"]


class SessionInfo(msgspec.Struct, frozen=True):
    """One session at a glance.

    Args:
        session_id: the session.
        events: durable events; None if the log cannot be read.
        sealed: whether it is sealed.
        size_bytes: of the log file.
        created_at: from the header; None if that cannot be read.
        labels: from the header.
        status: `ok`; `torn` (the next owner cuts off an interrupted write); `damaged`; `failed` (given up).
        last_at: time of the last event, ns since the epoch; None if there is none.
        quarantine_bytes: size of what recovery has cut off and kept.
        reason: what is wrong; None if nothing is.
    """

    session_id: str
    events: int | None
    sealed: bool
    size_bytes: int
    created_at: str | None
    labels: dict[str, str]
    status: Status
    last_at: int | None
    quarantine_bytes: int
    reason: str | None = None


def describe(runtime: Runtime, session_id: str) -> SessionInfo:
    """Look at one session; a damaged one is described.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    known = runtime.known(session_id)
    if known is not None and (known.is_open or known.state is SlotState.FAILED):
        slot = known
    else:  # one of its own: what this process remembers may be an earlier session of that id
        slot = Slot(runtime.fs, runtime.directory, session_id, lambda _: None)
    try:
        if not slot.is_open:
            slot.open_directory().close()
        return _describe(runtime, slot)
    except SessionNotFoundError:
        raise
    except (FormatError, OSError) as error:
        return SessionInfo(
            session_id,
            events=None,
            sealed=False,
            size_bytes=0 if isinstance(error, PermissionError) else _log_size(runtime, session_id),
            created_at=None,
            labels={},
            status="damaged",
            last_at=None,
            quarantine_bytes=0,
            reason=str(error),
        )


def _describe(runtime: Runtime, slot: Slot) -> SessionInfo:
    if slot.is_open:
        with slot.reading() as (view, head, receipt, header):
            return _info(runtime, slot, view, head, receipt, header, None)
    with contextlib.closing(slot.open_reader()) as reader:
        torn = None
        if reader.reason != "clean":
            torn = f"{reader.tail_bytes} bytes of an interrupted write ({reader.reason})"
        return _info(runtime, slot, reader.view, reader.head, reader.receipt, reader.header, torn)


def _info(
    runtime: Runtime,
    slot: Slot,
    view: LogView,
    head: Head,
    receipt: Receipt | None,
    header: SessionHeader,
    torn: str | None,
) -> SessionInfo:
    status: Status = "ok" if torn is None else "torn"
    reason = torn
    if slot.state is SlotState.FAILED:
        status, reason = "failed", repr(slot.cause)
    last = next(view.events(head.position - 1, head.position, head)) if head.position else None
    return SessionInfo(
        slot.session_id,
        events=head.position,
        sealed=receipt is not None,
        size_bytes=_log_size(runtime, slot.session_id),
        created_at=header.created_at,
        labels=dict(header.labels),
        status=status,
        last_at=None if last is None else last.at,
        quarantine_bytes=_quarantined(runtime, slot.session_id),
        reason=reason,
    )


def glance_at(runtime: Runtime, session_id: str) -> SessionInfo | None:
    """Look at one session of a list; None if it was deleted meanwhile."""
    known = runtime.known(session_id)
    try:
        found = None
        if known is None or (not known.is_open and known.state is not SlotState.FAILED):
            found = glance(runtime.directory, session_id)
    except (FormatError, OSError):
        found = None
    if found is None:
        return _describe_if_there(runtime, session_id)
    try:
        quarantine_bytes = _quarantined(runtime, session_id)
    except OSError:
        return _describe_if_there(runtime, session_id)
    return SessionInfo(
        session_id,
        events=found.events,
        sealed=found.sealed,
        size_bytes=found.size_bytes,
        created_at=found.header.created_at,
        labels=found.header.labels,
        status="ok",
        last_at=found.last_at,
        quarantine_bytes=quarantine_bytes,
    )


def _describe_if_there(runtime: Runtime, session_id: str) -> SessionInfo | None:
    try:
        return describe(runtime, session_id)
    except SessionNotFoundError:
        return None


def _log_size(runtime: Runtime, session_id: str) -> int:
    found = runtime.directory.stat(f"{session_id}/log")
    return 0 if found is None else found.size_bytes


def _quarantined(runtime: Runtime, session_id: str) -> int:
    if runtime.directory.stat(f"{session_id}/{QUARANTINE}") is None:
        return 0
    session = open_session_directory(runtime.directory, session_id)
    try:
        folder = session.open_directory(QUARANTINE)
        try:
            sizes = [folder.stat(name) for name in folder.names()]
        finally:
            folder.close()
    finally:
        session.close()
    return sum(found.size_bytes for found in sizes if found is not None)
