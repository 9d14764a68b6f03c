"""The async forms of `HarnessMemory` and `AcpSessions`, as `sealog.aio` gives them out.

Each call runs on a worker thread; a cancellation goes on when the call has ended, so its outcome is known.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..actors.event_loop import run_in_thread
from . import acp, harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..aio import Store


class HarnessMemory:
    """What a long-running agent harness remembers, as `sealog.projections.HarnessMemory`."""

    def __init__(self, store: Store) -> None:
        self._memory = harness.HarnessMemory(store.blocking)

    async def session_ids(self) -> list[str]:
        """List the sessions."""
        return await run_in_thread(self._memory.session_ids)

    async def is_initialized(self, session_id: str) -> bool:
        """Tell whether a session has a manifest."""
        return await run_in_thread(self._memory.is_initialized, session_id)

    async def initialize_session_if_missing(
        self,
        session_id: str,
        manifest: harness.SessionManifest,
        feature_list: Iterable[harness.FeatureRecord],
        initial_progress_entry: harness.ProgressEntry | None = None,
        initial_checkpoint: harness.RunCheckpoint | None = None,
    ) -> bool:
        """Initialize a session once; True for the call that did."""
        initialize = partial(
            self._memory.initialize_session_if_missing,
            session_id,
            manifest,
            feature_list,
            initial_progress_entry,
            initial_checkpoint,
        )
        return await run_in_thread(initialize)

    async def load_bootstrap_state(self, session_id: str) -> harness.BootstrapState:
        """Return what a new run starts from."""
        return await run_in_thread(self._memory.load_bootstrap_state, session_id)

    async def save_manifest(self, session_id: str, manifest: harness.SessionManifest) -> None:
        """Replace the manifest."""
        await run_in_thread(self._memory.save_manifest, session_id, manifest)

    async def append_progress_entry(self, session_id: str, entry: harness.ProgressEntry) -> None:
        """Add a progress entry."""
        await run_in_thread(self._memory.append_progress_entry, session_id, entry)

    async def replace_feature_list(self, session_id: str, features: Iterable[harness.FeatureRecord]) -> None:
        """Replace the feature list."""
        await run_in_thread(self._memory.replace_feature_list, session_id, features)

    async def update_feature_pass(self, session_id: str, feature_id: str, passes: bool) -> None:  # noqa: FBT001 — as in the original
        """Mark a feature."""
        await run_in_thread(self._memory.update_feature_pass, session_id, feature_id, passes)

    async def record_run_checkpoint(self, session_id: str, checkpoint: harness.RunCheckpoint) -> None:
        """Add a run checkpoint."""
        await run_in_thread(self._memory.record_run_checkpoint, session_id, checkpoint)

    async def load_transcript_messages(self, session_id: str) -> list[harness.Message]:
        """Return all messages of the transcript."""
        return await run_in_thread(self._memory.load_transcript_messages, session_id)

    async def append_transcript_messages(self, session_id: str, messages: Iterable[harness.Message]) -> None:
        """Add messages to the transcript, all or none."""
        await run_in_thread(self._memory.append_transcript_messages, session_id, messages)

    async def import_state(self, session_id: str, data: bytes, *, source: str | None = None) -> None:
        """Take over a state file of the older program."""
        await run_in_thread(partial(self._memory.import_state, session_id, data, source=source))

    async def export_state(self, session_id: str) -> bytes:
        """Return a session as a state file of the older program."""
        return await run_in_thread(self._memory.export_state, session_id)


class AcpSessions:
    """ACP targets in a store, as `sealog.projections.AcpSessions`."""

    def __init__(self, store: Store, *, clock_ms: Callable[[], int] | None = None) -> None:
        self._sessions = acp.AcpSessions(store.blocking, clock_ms=clock_ms)

    async def targets(self) -> list[str]:
        """Return all targets."""
        return await run_in_thread(self._sessions.targets)

    async def persist_session_id(self, target: str, acp_session_id: str) -> None:
        """Note the ACP session of a target."""
        await run_in_thread(self._sessions.persist_session_id, target, acp_session_id)

    async def persist_worker_state(
        self, target: str, acp_session_id: str | None, state: acp.WorkerState
    ) -> None:
        """Note the readiness of a target's worker."""
        await run_in_thread(self._sessions.persist_worker_state, target, acp_session_id, state)

    async def append_entries(
        self, target: str, acp_session_id: str, entries: Iterable[acp.SnapshotEntry]
    ) -> None:
        """Add entries to the snapshot of a target."""
        await run_in_thread(self._sessions.append_entries, target, acp_session_id, entries)

    async def replace_entries(
        self, target: str, acp_session_id: str, entries: Iterable[acp.SnapshotEntry]
    ) -> None:
        """Replace the entries of a target by those of a replay."""
        await run_in_thread(self._sessions.replace_entries, target, acp_session_id, entries)

    async def load_worker_state(self, target: str) -> acp.WorkerState | None:
        """Return the readiness of a target's worker; None if the target is not known."""
        return await run_in_thread(self._sessions.load_worker_state, target)

    async def load_session_id(self, target: str) -> str | None:
        """Return the ACP session of a target; None if the target is not known."""
        return await run_in_thread(self._sessions.load_session_id, target)

    async def ready_for_startup(self, target: str) -> bool:
        """Tell whether a target has an ACP session and its worker is available."""
        return await run_in_thread(self._sessions.ready_for_startup, target)

    async def look(
        self,
        target: str,
        requested_entries: int,
        prime_timed_out: bool = False,  # noqa: FBT001, FBT002 — as in the original
    ) -> acp.LookSnapshot:
        """Return the newest entries of a target, and whether they show what is going on."""
        return await run_in_thread(self._sessions.look, target, requested_entries, prime_timed_out)

    async def import_state(self, target: str, data: bytes, *, source: str | None = None) -> None:
        """Take over a state file of the older relay."""
        await run_in_thread(partial(self._sessions.import_state, target, data, source=source))

    async def export_state(self, target: str) -> bytes:
        """Return a target as a state file of the older relay."""
        return await run_in_thread(self._sessions.export_state, target)
