"""The state of agents that speak ACP: per target the session id, the worker's readiness, the newest entries.

    sessions = AcpSessions(store)
    sessions.append_entries("agent-1", acp_session_id, [AgentEntry(["done"])])
    sessions.look("agent-1", 50)

A target is any string. What is known of it is a projection of the events in its session's log.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from ..storage.errors import InvalidEventError, SessionNotFoundError
from ..storage.events import Event, is_blank
from .acp_fold import (
    ENTRIES_APPENDED,
    ENTRIES_REPLACED,
    STATE_REPLACED,
    Acp,
    AcpState,
    entries_event,
    worker_state_event,
)
from .acp_state import read_state, state_file, write_state
from .acp_types import (
    ACP_LOOK_PRIME_TIMEOUT_MS,
    ACP_STREAM_STALLED_AFTER_MS,
    AgentEntry,
    CognitionEntry,
    InvocationEntry,
    InvocationStatus,
    LookFreshness,
    LookSnapshot,
    SnapshotEntry,
    SnapshotSource,
    StaleReason,
    UpdateEntry,
    UserEntry,
    WorkerState,
    checked_entry,
    checked_enum,
)
from .naming import KeySpace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..actors.store import Store

__all__ = [
    "ACP_LOOK_PRIME_TIMEOUT_MS",
    "AcpSessions",
    "AgentEntry",
    "CognitionEntry",
    "InvocationEntry",
    "InvocationStatus",
    "LookFreshness",
    "LookSnapshot",
    "SnapshotEntry",
    "SnapshotSource",
    "StaleReason",
    "UpdateEntry",
    "UserEntry",
    "WorkerState",
]

TARGETS: Final = KeySpace("acp")
TIME_MS_END: Final = 2**63
_STATE: Final = Acp()


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class AcpSessions:
    """ACP targets in a store. Thread-safe; the store stays the caller's to close.

    Every method raises what the store raises when it opens, reads or appends to a session: above all
    `SessionLockedError` if another process owns it, and `InvalidHeaderError` if the target is not text, or
    over 64 KiB of it.

    Args:
        store: where the targets are kept.
        clock_ms: returns the time, ms since the epoch; a time before the epoch is none. The wall clock if
            left out.
    """

    def __init__(self, store: Store, *, clock_ms: Callable[[], int] | None = None) -> None:
        self._store = store
        self._clock_ms = _wall_clock_ms if clock_ms is None else clock_ms

    def targets(self) -> list[str]:
        """Return all targets."""
        return list(TARGETS.keys(self._store))

    def persist_session_id(self, target: str, acp_session_id: str) -> None:
        """Note the ACP session of a target; its entries stay. A new target is available.

        Raises:
            InvalidEventError: the id is blank or not text; nothing was written.
        """
        self._append(target, entries_event(ENTRIES_APPENDED, _checked_id(acp_session_id), [], None))

    def persist_worker_state(self, target: str, acp_session_id: str | None, state: WorkerState) -> None:
        """Note the readiness of a target's worker.

        Args:
            target: the target.
            acp_session_id: its ACP session; None to leave it as it is, and an unknown target unknown.
            state: the readiness.

        Raises:
            InvalidEventError: the id is blank or not text, or there is no such readiness; nothing was
                written.
        """
        state = checked_enum("worker_state", state, WorkerState)
        if acp_session_id is not None:
            acp_session_id = _checked_id(acp_session_id)
        elif self._load(target).acp_session_id is None:
            return
        self._append(target, worker_state_event(acp_session_id, state))

    def append_entries(self, target: str, acp_session_id: str, entries: Iterable[SnapshotEntry]) -> None:
        """Add entries to the snapshot of a target; the newest 1000 are retained.

        Args:
            target: the target.
            acp_session_id: its ACP session from now on.
            entries: what the agent sent, oldest first.

        Raises:
            InvalidEventError: the id is blank, or an entry cannot be stored; nothing was written.
            LimitExceededError: the entries are over 64 MiB; nothing was written.
        """
        self._entries(ENTRIES_APPENDED, target, acp_session_id, entries)

    def replace_entries(self, target: str, acp_session_id: str, entries: Iterable[SnapshotEntry]) -> None:
        """Put the entries that the replay of a load gave in the place of those that were there.

        Args:
            target: the target.
            acp_session_id: its ACP session from now on.
            entries: all of them, oldest first; the newest 1000 are retained.

        Raises:
            InvalidEventError: the id is blank, or an entry cannot be stored; nothing was written.
            LimitExceededError: the entries are over 64 MiB; nothing was written.
        """
        self._entries(ENTRIES_REPLACED, target, acp_session_id, entries)

    def load_worker_state(self, target: str) -> WorkerState | None:
        """Return the readiness of a target's worker; None if the target is not known."""
        state = self._load(target)
        return None if state.acp_session_id is None else state.readiness

    def load_session_id(self, target: str) -> str | None:
        """Return the ACP session of a target; None if the target is not known."""
        return self._load(target).acp_session_id

    def ready_for_startup(self, target: str) -> bool:
        """Tell whether a target has an ACP session and its worker is available."""
        state = self._load(target)
        acp_session_id = state.acp_session_id or ""
        return not is_blank(acp_session_id) and state.readiness is WorkerState.AVAILABLE

    def look(
        self,
        target: str,
        requested_entries: int,
        prime_timed_out: bool = False,  # noqa: FBT001, FBT002 — as in the original
    ) -> LookSnapshot:
        """Return the newest entries of a target, and whether they show what is going on.

        Args:
            target: the target.
            requested_entries: how many entries at most.
            prime_timed_out: whether the caller has waited `ACP_LOOK_PRIME_TIMEOUT_MS` for entries in vain.

        Raises:
            ValueError: fewer than no entries.
        """
        if requested_entries < 0:
            msg = f"a look at {requested_entries} entries"
            raise ValueError(msg)
        state = self._load(target)
        entries = state.newest(requested_entries)
        age_ms = self._age_ms(state) if entries else None
        reason = _stale_reason(
            state, has_entries=bool(entries), prime_timed_out=prime_timed_out, age_ms=age_ms
        )
        return LookSnapshot(
            entries,
            LookFreshness.FRESH if reason is None else LookFreshness.STALE,
            SnapshotSource.LIVE_BUFFER if entries else SnapshotSource.NONE,
            reason,
            age_ms,
        )

    def import_state(self, target: str, data: bytes, *, source: str | None = None) -> None:
        """Take over a state file of the older relay, in the place of all that was there.

        Entries over the 1000th stay until the next append or replacement.

        Args:
            target: the target.
            data: the file's bytes.
            source: what to call the file in errors; the name it has there if left out.

        Raises:
            InvalidStateError: the older relay would have refused it; nothing was imported.
            LimitExceededError: it is over 64 MiB; nothing was imported.
        """
        TARGETS.session_id(target)
        whole = read_state(data, state_file(target) if source is None else source)
        self._append(target, Event(STATE_REPLACED, f"{len(whole.entries)} entries", whole))

    def export_state(self, target: str) -> bytes:
        """Return a target as a state file of the older relay.

        Raises:
            SessionNotFoundError: the target is not known.
        """
        state = self._load(target)
        if state.acp_session_id is None:
            raise SessionNotFoundError(target, self._store.path)
        return write_state(state, state.newest(len(state.entries)))

    def _load(self, target: str) -> AcpState:
        session = TARGETS.find(self._store, target)
        return AcpState() if session is None else session.project(_STATE)

    def _append(self, target: str, event: Event) -> None:
        TARGETS.append(self._store, target, [event], _STATE)

    def _entries(self, kind: str, target: str, acp_session_id: str, entries: Iterable[SnapshotEntry]) -> None:
        acp_session_id = _checked_id(acp_session_id)
        checked = [checked_entry(f"entries[{at}]", entry) for at, entry in enumerate(entries)]
        self._append(target, entries_event(kind, acp_session_id, checked, self._now_ms()))

    def _now_ms(self) -> int | None:
        now_ms = math.floor(self._clock_ms())
        return now_ms if 0 <= now_ms < TIME_MS_END else None

    def _age_ms(self, state: AcpState) -> int | None:
        shown_ms = state.update_ms if state.frame_ms is None else state.frame_ms
        now_ms = self._now_ms()
        return None if shown_ms is None or now_ms is None or shown_ms > now_ms else now_ms - shown_ms


def _checked_id(acp_session_id: str) -> str:
    if not isinstance(acp_session_id, str):
        raise InvalidEventError("acp_session_id", f"must be a str, not {type(acp_session_id).__name__}")
    if is_blank(acp_session_id):
        raise InvalidEventError("acp_session_id", "is blank")
    return acp_session_id


def _stale_reason(
    state: AcpState, *, has_entries: bool, prime_timed_out: bool, age_ms: int | None
) -> StaleReason | None:
    """Return why a look is stale: the first rule that fits decides."""
    worker = state.readiness
    if state.acp_session_id is None or worker is WorkerState.UNAVAILABLE:
        return StaleReason.WORKER_UNAVAILABLE
    if not has_entries:
        return StaleReason.SNAPSHOT_PRIME_TIMEOUT if prime_timed_out else StaleReason.WORKER_INITIALIZING
    if worker is WorkerState.BUSY:
        return None
    if worker is WorkerState.INITIALIZING:
        return StaleReason.WORKER_INITIALIZING
    return StaleReason.STREAM_STALLED if (age_ms or 0) >= ACP_STREAM_STALLED_AFTER_MS else None
