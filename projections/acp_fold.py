"""The events of an ACP target, and their fold: the newest entries, so many that it stays small."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ..storage.errors import InvalidStateError
from ..storage.events import Event
from .acp_types import SNAPSHOT_ENTRIES_MAX, SnapshotEntry, WorkerState
from .base import Projection

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRIES_APPENDED: Final = "acp.entries-appended"
ENTRIES_REPLACED: Final = "acp.entries-replaced"
WORKER_STATE_SAVED: Final = "acp.worker-state-saved"
STATE_REPLACED: Final = "acp.state-replaced"

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(cast("type[SnapshotEntry]", SnapshotEntry)).decode


class EntriesData(msgspec.Struct):
    """`data` of ENTRIES_APPENDED and ENTRIES_REPLACED.

    Args:
        acp_session_id: the ACP session from now on.
        entries: the entries.
        at_ms: when, ms since the epoch; None if there are none, or the clock had no time.
    """

    acp_session_id: str
    entries: list[Any]
    at_ms: int | None = None


class WorkerStateData(msgspec.Struct):
    """`data` of WORKER_STATE_SAVED."""

    worker_state: WorkerState
    acp_session_id: str | None = None


class WholeState(msgspec.Struct):
    """`data` of STATE_REPLACED.

    Args:
        acp_session_id: the ACP session.
        worker_state: the worker's readiness; None if the file does not say, which is available.
        lines: what the older program had before there were entries; it is kept and never shown.
        entries: all entries, however many.
        frame_ms: time of the last frame, ms since the epoch.
        update_ms: time of the last change of the entries.
    """

    acp_session_id: str
    worker_state: WorkerState | None
    lines: list[str]
    entries: list[Any]
    frame_ms: int | None
    update_ms: int | None


def entries_event(
    kind: str, acp_session_id: str, entries: Sequence[SnapshotEntry], at_ms: int | None
) -> Event:
    """Return the event of appended or replaced entries."""
    data = EntriesData(acp_session_id, list(entries), at_ms if entries else None)
    return Event(kind, f"{len(entries)} entries", data)


def worker_state_event(acp_session_id: str | None, state: WorkerState) -> Event:
    """Return the event of a worker's readiness."""
    return Event(WORKER_STATE_SAVED, state.value, WorkerStateData(state, acp_session_id))


class AcpState(msgspec.Struct):
    """What is known of a target.

    Args:
        acp_session_id: the ACP session; None as long as the target is not known.
        worker_state: see `WholeState`.
        lines: see `WholeState`.
        entries: the retained ones, encoded, so that each look decodes copies of those it shows.
        frame_ms: see `WholeState`.
        update_ms: see `WholeState`.
    """

    acp_session_id: str | None = None
    worker_state: WorkerState | None = None
    lines: list[str] = []
    entries: list[bytes] = []
    frame_ms: int | None = None
    update_ms: int | None = None

    @property
    def readiness(self) -> WorkerState:
        """The worker's readiness, as far as it is known."""
        return self.worker_state or WorkerState.AVAILABLE

    def newest(self, count: int) -> list[SnapshotEntry]:
        """Return the newest entries, oldest first."""
        return [_decode(entry) for entry in self.entries[max(len(self.entries) - count, 0) :]]


class Acp(Projection[AcpState]):
    """The state of an ACP target."""

    name = "sealog.acp"
    state_type = AcpState
    kinds = frozenset({ENTRIES_APPENDED, ENTRIES_REPLACED, WORKER_STATE_SAVED, STATE_REPLACED})

    def initial(self) -> AcpState:
        """Return the state of a target that is not known."""
        return AcpState()

    def apply(self, state: AcpState, event: Event, /) -> AcpState:
        """Return the state after one more event.

        Raises:
            InvalidStateError: the event was not made here.
        """
        try:
            if event.kind == WORKER_STATE_SAVED:
                self._save_worker_state(state, event.decode(WorkerStateData))
            elif event.kind == STATE_REPLACED:
                return self._replaced(event.decode(WholeState))
            else:
                self._add(state, event.decode(EntriesData), replace=event.kind == ENTRIES_REPLACED)
        except msgspec.ValidationError as error:
            raise InvalidStateError(f"an event ({event.kind})", "data", str(error)) from error
        return state

    @staticmethod
    def _save_worker_state(state: AcpState, data: WorkerStateData) -> None:
        state.worker_state = data.worker_state
        if data.acp_session_id is not None:
            state.acp_session_id = data.acp_session_id

    @staticmethod
    def _add(state: AcpState, data: EntriesData, *, replace: bool) -> None:
        state.acp_session_id = data.acp_session_id
        state.worker_state = state.readiness
        state.lines = []
        if replace:
            state.entries = []
        state.entries += [_encode(entry) for entry in data.entries[-SNAPSHOT_ENTRIES_MAX:]]
        del state.entries[:-SNAPSHOT_ENTRIES_MAX]
        if data.entries:
            state.frame_ms = state.update_ms = data.at_ms

    @staticmethod
    def _replaced(data: WholeState) -> AcpState:
        return AcpState(
            data.acp_session_id,
            data.worker_state,
            data.lines,
            [_encode(entry) for entry in data.entries],
            data.frame_ms,
            data.update_ms,
        )

    def view(self, state: AcpState, /) -> AcpState:
        """Return a snapshot."""
        snapshot = copy.copy(state)
        snapshot.entries = list(state.entries)
        return snapshot
