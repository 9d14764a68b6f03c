"""The memory of a long-running agent harness: per session a manifest, features, progress, runs, a transcript.

    memory = HarnessMemory(store)
    memory.initialize_session_if_missing("agent-1", manifest, features)
    state = memory.load_bootstrap_state("agent-1")

Every call that changes something is one batch of events in the session's log, so that it is there wholly or
not at all after a crash; what is loaded is a projection of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ..storage.errors import (
    FeatureNotFoundError,
    PositionConflictError,
    SessionNotFoundError,
)
from . import harness_fold as events_of
from .harness_fold import Harness, HarnessState, messages_of
from .harness_state import read_state, state_file, write_state
from .harness_types import (
    BootstrapState,
    FeatureRecord,
    InitCommand,
    InitPlan,
    InitShell,
    InitShellScript,
    InitStep,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
)
from .naming import KeySpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..actors.session import Session
    from ..actors.store import Store
    from ..storage.events import Event

__all__ = [
    "BootstrapState",
    "FeatureRecord",
    "HarnessMemory",
    "InitCommand",
    "InitPlan",
    "InitShell",
    "InitShellScript",
    "InitStep",
    "Message",
    "MessageRole",
    "ProgressEntry",
    "RunCheckpoint",
    "RunStatus",
    "SessionManifest",
]

SESSIONS: Final = KeySpace("harness", has_prefix=False)
_STATE: Final = Harness()


class HarnessMemory:
    """Harness sessions in a store, by any key. Thread-safe; the store stays the caller's to close.

    Every method raises what the store raises when it opens, reads or appends to a session: above all
    `SessionLockedError` if another process owns it, `SessionExistsError` if the id of the session belongs to
    somebody else, and `InvalidHeaderError` if the key is not text, or over 64 KiB of it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def session_ids(self) -> list[str]:
        """Return the keys of all harness sessions."""
        return list(SESSIONS.keys(self._store))

    def is_initialized(self, session_id: str) -> bool:
        """Tell whether the session has a manifest."""
        return self._load(session_id)[1].manifest is not None

    def initialize_session_if_missing(
        self,
        session_id: str,
        manifest: SessionManifest,
        feature_list: Iterable[FeatureRecord],
        initial_progress_entry: ProgressEntry | None = None,
        initial_checkpoint: RunCheckpoint | None = None,
    ) -> bool:
        """Give the session its manifest, unless it has one; of many callers at once one does it.

        Args:
            session_id: the session.
            manifest: its manifest.
            feature_list: its features, in the place of any that were there without a manifest.
            initial_progress_entry: added to the progress.
            initial_checkpoint: added to the checkpoints.

        Returns:
            Whether this call did it. If not, nothing was changed and nothing but the key was looked at.

        Raises:
            InvalidEventError: an argument cannot be stored; nothing was written.
        """
        session, state = self._load(session_id)
        if state.manifest is not None:
            return False
        events = [events_of.manifest_saved(manifest), events_of.features_replaced(feature_list)]
        if initial_progress_entry is not None:
            events.append(events_of.progress_appended(initial_progress_entry))
        if initial_checkpoint is not None:
            events.append(events_of.checkpoint_recorded(initial_checkpoint))
        if session is None:
            session = SESSIONS.open_for(self._store, session_id, events)
            state = session.project(_STATE)
        while state.manifest is None:
            try:
                session.append_many(events, expected=state.position)
            except PositionConflictError:
                state = session.project(_STATE)
            else:
                return True
        return False

    def load_bootstrap_state(self, session_id: str) -> BootstrapState:
        """Return what a run starts from; an empty state for a session that is not known."""
        return _bootstrap(session_id, self._load(session_id)[1])

    def save_manifest(self, session_id: str, manifest: SessionManifest) -> None:
        """Store a manifest, in the place of the one before; a session that had none is initialized by it.

        Raises:
            InvalidEventError: it cannot be stored; nothing was written.
        """
        self._append(session_id, [events_of.manifest_saved(manifest)])

    def append_progress_entry(self, session_id: str, entry: ProgressEntry) -> None:
        """Add to the progress.

        Raises:
            InvalidEventError: it cannot be stored; nothing was written.
        """
        self._append(session_id, [events_of.progress_appended(entry)])

    def replace_feature_list(self, session_id: str, features: Iterable[FeatureRecord]) -> None:
        """Store a feature list, in the place of the one before.

        Raises:
            InvalidEventError: it cannot be stored; nothing was written.
        """
        self._append(session_id, [events_of.features_replaced(features)])

    def update_feature_pass(self, session_id: str, feature_id: str, passes: bool) -> None:  # noqa: FBT001 — as in the original
        """Note whether a feature passes; of several with one id, the first.

        Raises:
            FeatureNotFoundError: there is no such feature; nothing was written, and no session made.
            InvalidEventError: `passes` is no bool; nothing was written.
        """
        session, state = self._load(session_id)
        while session is not None and state.feature_index(feature_id) is not None:
            update = events_of.feature_updated(feature_id, passes=passes)
            try:
                session.append_many([update], expected=state.position)
            except PositionConflictError:  # what was appended meanwhile may have replaced the list
                state = session.project(_STATE)
            else:
                return
        raise FeatureNotFoundError(session_id, feature_id)

    def record_run_checkpoint(self, session_id: str, checkpoint: RunCheckpoint) -> None:
        """Add to the checkpoints.

        Raises:
            InvalidEventError: it cannot be stored; nothing was written.
        """
        self._append(session_id, [events_of.checkpoint_recorded(checkpoint)])

    def load_transcript_messages(self, session_id: str) -> list[Message]:
        """Return all messages of the transcript, oldest first; none for a session that is not known."""
        session, state = self._load(session_id)
        return list(_messages(session, state))

    def append_transcript_messages(self, session_id: str, messages: Iterable[Message]) -> None:
        """Add messages to the transcript, all of them or none.

        Raises:
            InvalidEventError: one of them cannot be stored; nothing was written.
            LimitExceededError: they are over 64 MiB together; nothing was written.
        """
        self._append(session_id, events_of.messages_appended(messages))

    def import_state(self, session_id: str, data: bytes, *, source: str | None = None) -> None:
        """Take over a state file of the older harness memory, in the place of all that was there.

        Args:
            session_id: the session.
            data: the file's bytes.
            source: what to call the file in errors; the name it has there if left out.

        Raises:
            InvalidStateError: the older program, or one of its loads, would have refused it; nothing was
                imported.
            LimitExceededError: it is over 64 MiB; nothing was imported.
        """
        SESSIONS.session_id(session_id)
        old = read_state(data, state_file(session_id) if source is None else source)
        whole = events_of.whole_state(old.manifest, old.feature_list, old.recent_progress, old.checkpoints)
        self._append(session_id, events_of.state_replaced(whole, old.transcript))

    def export_state(self, session_id: str) -> bytes:
        """Return the session as a state file of the older harness memory.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        session, state = self._load(session_id)
        if session is None:
            raise SessionNotFoundError(session_id, self._store.path)
        return write_state(_bootstrap(session_id, state), _messages(session, state))

    def _load(self, session_id: str) -> tuple[Session | None, HarnessState]:
        session = SESSIONS.find(self._store, session_id)
        return session, HarnessState() if session is None else session.project(_STATE)

    def _append(self, session_id: str, events: Sequence[Event]) -> None:
        SESSIONS.append(self._store, session_id, events, _STATE)


def _bootstrap(session_id: str, state: HarnessState) -> BootstrapState:
    return BootstrapState(
        None if state.manifest is None else state.manifest.manifest(session_id),
        [msgspec.structs.replace(feature, steps=list(feature.steps)) for feature in state.features],
        state.progress[: state.progress_count],
        state.checkpoints[: state.checkpoint_count],
    )


def _messages(session: Session | None, state: HarnessState) -> Iterator[Message]:
    if session is not None:
        for start, stop in state.message_runs():
            for event in session.events(start, stop):
                yield from messages_of(event)
