"""The async forms of the harness memory and of the ACP sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

import sealog.aio
from sealog.aio import AcpSessions, HarnessMemory
from sealog.projections.acp import WorkerState
from sealog.projections.harness import Message, MessageRole, ProgressEntry

from ..projections.acp_kit import NOW, Clock, agents, lines
from ..projections.kit import CHECKPOINT, HELLO, MANIFEST, PROGRESS, feature

if TYPE_CHECKING:
    from .loops import Backend

TASKS = 16


def test_of_many_tasks_one_initializes(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        memory = HarnessMemory(store)
        for session in ("a", "b", "c"):

            async def initialize(number: int, session: str = session) -> bool:
                manifest = msgspec.structs.replace(MANIFEST, current_objective=str(number))
                return await HarnessMemory(store).initialize_session_if_missing(
                    session, manifest, [feature(str(number))], ProgressEntry(str(number), "", number)
                )

            results = await loop.gather(*[(initialize, number) for number in range(TASKS)])
            assert sorted(results) == [False] * (TASKS - 1) + [True]
            winner = str(results.index(True))
            state = await memory.load_bootstrap_state(session)
            assert state.manifest is not None
            assert state.manifest.current_objective == winner
            assert [item.id for item in state.feature_list] == [winner]
            assert [entry.run_id for entry in state.recent_progress] == [winner]

    loop.run(main)


def test_a_harness_remembers(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        memory = HarnessMemory(store)
        assert not await memory.is_initialized("s")
        assert await memory.initialize_session_if_missing("s", MANIFEST, [feature("f")])
        assert await memory.is_initialized("s")
        await memory.save_manifest("s", msgspec.structs.replace(MANIFEST, current_objective="more"))
        await memory.append_progress_entry("s", PROGRESS)
        await memory.replace_feature_list("s", [feature("f"), feature("g")])
        await memory.update_feature_pass("s", "g", True)
        await memory.record_run_checkpoint("s", CHECKPOINT)
        await memory.append_transcript_messages("s", [HELLO, Message(MessageRole.ASSISTANT, "hi")])
        assert [message.content for message in await memory.load_transcript_messages("s")] == ["hello", "hi"]
        state = await memory.load_bootstrap_state("s")
        assert [item.passes for item in state.feature_list] == [False, True]
        assert state.checkpoints == [CHECKPOINT]
        with pytest.raises(sealog.FeatureNotFoundError):
            await memory.update_feature_pass("s", "none", True)
        exported = await memory.export_state("s")
        other = sealog.aio.Store(store.blocking)
        await HarnessMemory(other).import_state("t", exported.replace(b'"s"', b'"t"'))
        assert await memory.session_ids() == ["s", "t"]

    loop.run(main)


def test_acp_targets(loop: Backend, store: sealog.aio.Store) -> None:
    async def main() -> None:
        sessions = AcpSessions(store, clock_ms=Clock())
        assert await sessions.load_session_id("t") is None
        await sessions.persist_session_id("t", "acp-1")
        await sessions.persist_worker_state("t", "acp-1", WorkerState.AVAILABLE)
        assert await sessions.load_session_id("t") == "acp-1"
        assert await sessions.load_worker_state("t") is WorkerState.AVAILABLE
        assert await sessions.ready_for_startup("t")
        await loop.gather(*[(sessions.append_entries, "t", "acp-1", agents(n)) for n in range(TASKS)])
        look = await sessions.look("t", 100)
        assert sorted(map(int, lines(look))) == list(range(TASKS))
        assert look.snapshot_age_ms == NOW - NOW
        await sessions.replace_entries("t", "acp-1", agents("only"))
        assert lines(await sessions.look("t", 100, prime_timed_out=True)) == ["only"]
        await sessions.import_state("u", await sessions.export_state("t"))
        assert await sessions.targets() == ["t", "u"]

    loop.run(main)
