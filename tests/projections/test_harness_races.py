"""The harness memory among many: threads, and another process."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import sealog
from sealog.projections import HarnessMemory
from sealog.projections.harness import Message, MessageRole, ProgressEntry, RunCheckpoint, RunStatus

from .kit import MANIFEST, feature, together

if TYPE_CHECKING:
    from pathlib import Path

THREADS = 16


def test_of_many_threads_one_initializes(store: sealog.Store):
    for round_number in range(5):
        session = f"s{round_number}"
        memories = [HarnessMemory(store) for _ in range(THREADS)]

        def call(number: int, session: str = session, memories: list[HarnessMemory] = memories) -> bool:
            manifest = msgspec.structs.replace(MANIFEST, current_objective=str(number))
            return memories[number].initialize_session_if_missing(
                session,
                manifest,
                [feature(str(number))],
                ProgressEntry(str(number), "", number),
                RunCheckpoint(str(number), number, status=RunStatus.SUCCEEDED),
            )

        results = together(THREADS, call)
        assert sorted(results) == [False] * (THREADS - 1) + [True]
        winner = str(results.index(True))
        state = memories[0].load_bootstrap_state(session)
        assert state.manifest is not None
        assert state.manifest.current_objective == winner
        assert [item.id for item in state.feature_list] == [winner]
        assert [entry.run_id for entry in state.recent_progress] == [winner]
        assert [run.run_id for run in state.checkpoints] == [winner]


def test_initializing_among_writers_loses_nothing(store: sealog.Store):
    memory = HarnessMemory(store)

    def call(number: int) -> Any:
        if number % 4 == 0:
            return memory.initialize_session_if_missing("s", MANIFEST, [feature("f")])
        for step in range(5):
            memory.append_transcript_messages(
                "s", [Message(MessageRole.USER, f"{number} {step} {part}") for part in range(3)]
            )
            memory.append_progress_entry("s", ProgressEntry(str(number), "", step))
        return None

    results = together(THREADS, call)
    assert results.count(True) == 1
    texts = [message.content for message in memory.load_transcript_messages("s")]
    for number in (number for number in range(THREADS) if number % 4):
        own = [text for text in texts if text.startswith(f"{number} ")]
        assert own == [f"{number} {step} {part}" for step in range(5) for part in range(3)]
    for start in range(0, len(texts), 3):
        assert len({text.rpartition(" ")[0] for text in texts[start : start + 3]}) == 1
    assert len(memory.load_bootstrap_state("s").recent_progress) == 60


def test_features_are_updated_by_many_threads(store: sealog.Store):
    memory = HarnessMemory(store)
    memory.replace_feature_list("s", [feature(str(number)) for number in range(THREADS)])
    results = together(THREADS, lambda number: memory.update_feature_pass("s", str(number), True))
    assert results == [None] * THREADS
    assert all(item.passes for item in memory.load_bootstrap_state("s").feature_list)


def test_a_feature_that_goes_away_meanwhile_is_not_found(store: sealog.Store):
    memory = HarnessMemory(store)
    lists = itertools.cycle([[feature("a"), feature("b")], [feature("b")]])
    memory.replace_feature_list("s", [feature("a"), feature("b")])

    def call(number: int) -> Any:
        if number == 0:
            for _ in range(20):
                memory.replace_feature_list("s", next(lists))
            return None
        return [memory.update_feature_pass("s", "a", True) for _ in range(3)]

    results = together(4, call)
    assert all(
        isinstance(result, sealog.FeatureNotFoundError) or result in (None, [None] * 3) for result in results
    )
    session = store.open_session("s")
    has_a = False
    for event in session.events():
        if event.kind == "harness.features-replaced":
            has_a = any(item["id"] == "a" for item in event.data["features"])
        else:
            assert has_a, "a feature was updated that was not in the list"


OWNER = """
import sys
import sealog
from sealog.projections.harness import HarnessMemory, SessionManifest

with sealog.open(sys.argv[1]) as store:
    manifest = SessionManifest("s", active_branch="b", current_objective="child")
    print(HarnessMemory(store).initialize_session_if_missing("s", manifest, []), flush=True)
    sys.stdin.read()
"""


def test_another_process_that_owns_the_session_is_named(tmp_path: Path):
    path = str(tmp_path / "store")
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "True\n"
        with sealog.open(path) as store:
            memory = HarnessMemory(store)
            for call in (memory.is_initialized, memory.load_bootstrap_state):
                with pytest.raises(sealog.SessionLockedError):
                    call("s")
            with pytest.raises(sealog.SessionLockedError):
                memory.initialize_session_if_missing("s", MANIFEST, [])
            memory.save_manifest("other", MANIFEST)
            with sealog.open(path, read_only=True) as reader:
                manifest = HarnessMemory(reader).load_bootstrap_state("s").manifest
                assert manifest is not None
                assert manifest.current_objective == "child"
            child.stdin.close()
            assert child.wait(60) == 0
            assert memory.initialize_session_if_missing("s", MANIFEST, []) is False
