"""What a call costs does not depend on how long the log is: bytes read and written are counted, not time."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.projections import AcpSessions, AgentEntry, HarnessMemory, WorkerState
from sealog.projections.harness_fold import feature_updated, messages_appended, progress_appended

from .kit import CHECKPOINT, HELLO, MANIFEST, PROGRESS, CountingFileSystem, feature

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES = [10, 1_000, 100_000]
SLACK_BYTES = 1024

Cost = dict[str, tuple[int, int]]


def counted(fs: CountingFileSystem, calls: dict[str, Callable[[], Any]]) -> Cost:
    """Return for each call the bytes it read and wrote of logs and checkpoints, once everything is warm."""
    for call in calls.values():
        call()
    costs: Cost = {}
    for name, call in calls.items():
        fs.reset()
        call()
        for counts in (fs.read, fs.written):
            counts.pop("lock", None)
        costs[name] = (sum(fs.read.values()), sum(fs.written.values()))
    return costs


def harness_calls(memory: HarnessMemory) -> dict[str, Callable[[], Any]]:
    return {
        "is_initialized": lambda: memory.is_initialized("s"),
        "initialize": lambda: memory.initialize_session_if_missing("s", MANIFEST, []),
        "bootstrap": lambda: memory.load_bootstrap_state("s"),
        "messages": lambda: memory.load_transcript_messages("s"),
        "manifest": lambda: memory.save_manifest("s", MANIFEST),
        "progress": lambda: memory.append_progress_entry("s", PROGRESS),
        "features": lambda: memory.replace_feature_list("s", [feature("f")]),
        "feature": lambda: memory.update_feature_pass("s", "f", True),
        "checkpoint": lambda: memory.record_run_checkpoint("s", CHECKPOINT),
        "say": lambda: memory.append_transcript_messages("s", [HELLO]),
    }


def check_flat(costs: list[Cost]) -> None:
    for name in costs[0]:
        small, large = costs[0][name], costs[-1][name]
        assert large[0] <= small[0] + SLACK_BYTES, name
        assert large[1] <= small[1] + SLACK_BYTES, name


def test_a_harness_call_costs_the_same_in_any_log(tmp_path: Path):
    live: list[Cost] = []
    opening: list[int] = []
    for size in SIZES:
        fs = CountingFileSystem()
        path = tmp_path / str(size)
        with sealog.open(path, file_system=fs) as store:
            memory = HarnessMemory(store)
            memory.initialize_session_if_missing("s", MANIFEST, [feature("f")], PROGRESS, CHECKPOINT)
            session = store.open_session("s")
            for start in range(0, size, 1000):
                events = [feature_updated("f", passes=bool(at % 2)) for at in range(min(1000, size - start))]
                session.append_many(events)
                memory.is_initialized("s")
            live.append(counted(fs, harness_calls(memory)))
        with sealog.open(path, file_system=fs) as store:
            fs.reset()
            assert HarnessMemory(store).is_initialized("s")
            opening.append(sum(fs.read.values()))
    check_flat(live)
    assert opening[-1] <= 2 * opening[1]


@pytest.mark.parametrize("make", [lambda: progress_appended(PROGRESS), lambda: messages_appended([HELLO])[0]])
def test_states_that_grow_do_not_make_calls_dearer(tmp_path: Path, make: Callable[[], sealog.Event]):
    live: list[Cost] = []
    for size in SIZES:
        fs = CountingFileSystem()
        with sealog.open(tmp_path / str(size), file_system=fs) as store:
            memory = HarnessMemory(store)
            memory.initialize_session_if_missing("s", MANIFEST, [feature("f")])
            session = store.open_session("s")
            for start in range(0, size, 1000):
                session.append_many([make()] * min(1000, size - start))
            memory.is_initialized("s")
            calls = harness_calls(memory)
            del calls["messages"]  # reads all messages, of course
            live.append(counted(fs, calls))
    check_flat(live)


def test_appending_alone_keeps_the_next_opening_cheap(tmp_path: Path):
    opening: list[int] = []
    for size in (20, 300):
        fs = CountingFileSystem()
        path = tmp_path / str(size)
        with sealog.open(path, file_system=fs) as store:
            memory = HarnessMemory(store)
            for _ in range(size):
                memory.append_transcript_messages("s", [HELLO] * 300)
        with sealog.open(path, file_system=fs) as store:
            store.open_session("s")
            fs.reset()
            assert not HarnessMemory(store).is_initialized("s")
            opening.append(fs.read["log"])
    assert opening[1] <= opening[0] + 100_000


def test_an_acp_call_costs_the_same_in_any_log(tmp_path: Path):
    live: list[Cost] = []
    opening: list[int] = []
    states: list[int] = []
    for size in (1_000, 100_000):
        fs = CountingFileSystem()
        path = tmp_path / str(size)
        with sealog.open(path, file_system=fs) as store:
            acp = AcpSessions(store, clock_ms=lambda: 5)
            acp.append_entries("t", "sid", [AgentEntry(["entry"])])
            session = store.open_session("k--acp-t")
            for start in range(0, size, 1000):
                session.append_many([session[0]] * min(1000, size - start))
                acp.load_session_id("t")
            calls: dict[str, Callable[[], Any]] = {
                "append": lambda acp=acp: acp.append_entries("t", "sid", [AgentEntry(["entry"])]),
                "look": lambda acp=acp: acp.look("t", 1000),
                "id": lambda acp=acp: acp.persist_session_id("t", "sid"),
                "worker": lambda acp=acp: acp.persist_worker_state("t", None, WorkerState.BUSY),
                "ready": lambda acp=acp: acp.ready_for_startup("t"),
                "replace": lambda acp=acp: acp.replace_entries("t", "sid", [AgentEntry(["entry"])] * 1000),
                "export": lambda acp=acp: acp.export_state("t"),
            }
            live.append(counted(fs, calls))
            fold = next(iter(session._slot._folds.values()))
            states.append(len(pickle.dumps(fold._state)))
        with sealog.open(path, file_system=fs) as store:
            fs.reset()
            assert len(AcpSessions(store).look("t", 5000).snapshot_entries) == 1000
            opening.append(sum(fs.read.values()))
    check_flat(live)
    assert states[1] <= states[0] + SLACK_BYTES
    assert opening[1] <= 2 * opening[0]


def test_a_look_decodes_only_what_it_shows(store: sealog.Store, monkeypatch: pytest.MonkeyPatch):
    acp = AcpSessions(store)
    acp.append_entries("t", "sid", [AgentEntry([str(number)]) for number in range(1000)])
    acp.look("t", 1)
    decoded: list[bytes] = []
    from sealog.projections import acp_fold

    decode = acp_fold._decode
    monkeypatch.setattr(acp_fold, "_decode", lambda data: decoded.append(data) or decode(data))
    assert acp.look("t", 3).snapshot_entries[0] == AgentEntry(["997"])
    assert len(decoded) == 3
