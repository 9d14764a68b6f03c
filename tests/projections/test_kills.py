"""Whatever was answered survives the end of the process, at every step."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.projections import AcpSessions, AgentEntry, HarnessMemory, WorkerState

from .kit import CHECKPOINT, HELLO, MANIFEST, PROGRESS, feature

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS: list[tuple[str, Callable[[HarnessMemory, AcpSessions], Any]]] = [
    ("say", lambda memory, acp: memory.append_transcript_messages("s", [HELLO] * 3)),
    (
        "init",
        lambda memory, acp: memory.initialize_session_if_missing("s", MANIFEST, [feature("f")], PROGRESS),
    ),
    ("again", lambda memory, acp: memory.initialize_session_if_missing("s", MANIFEST, [])),
    ("run", lambda memory, acp: memory.record_run_checkpoint("s", CHECKPOINT)),
    ("pass", lambda memory, acp: memory.update_feature_pass("s", "f", True)),
    ("append", lambda memory, acp: acp.append_entries("t", "sid", [AgentEntry(["x"])] * 1200)),
    ("busy", lambda memory, acp: acp.persist_worker_state("t", None, WorkerState.BUSY)),
    ("replace", lambda memory, acp: acp.replace_entries("t", "new", [AgentEntry(["y"])])),
    ("import", lambda memory, acp: memory.import_state("s", memory.export_state("s"))),
    ("import acp", lambda memory, acp: acp.import_state("t", acp.export_state("t"))),
    ("many", lambda memory, acp: memory.append_transcript_messages("s", [HELLO] * 1500)),
    ("plan", lambda memory, acp: memory.replace_feature_list("s", [feature("g")])),
]


def everything(store: sealog.Store) -> dict[str, Any]:
    memory, acp = HarnessMemory(store), AcpSessions(store, clock_ms=lambda: 5)
    return {
        **{f"harness {key}": json.loads(memory.export_state(key)) for key in memory.session_ids()},
        **{f"acp {target}": json.loads(acp.export_state(target)) for target in acp.targets()},
    }


@pytest.mark.parametrize("looks", [False, True], ids=["blind", "looking"])
def test_a_copy_of_the_files_at_any_step_holds_what_was_answered(tmp_path: Path, *, looks: bool):
    """The copy is what a killed process leaves: nothing was closed, and the lock is nobody's."""
    with sealog.open(tmp_path / "store") as store:
        memory, acp = HarnessMemory(store), AcpSessions(store, clock_ms=lambda: 5)
        for number, (_, step) in enumerate(STEPS):
            step(memory, acp)
            if looks:
                memory.load_bootstrap_state("s")
                acp.look("t", 5)
            copy = tmp_path / f"copy{number}"
            shutil.copytree(tmp_path / "store", copy)
            with sealog.open(copy) as killed:
                assert everything(killed) == everything(store)


def test_steps_go_on_in_a_new_process_each_as_if_there_were_one(tmp_path: Path):
    with sealog.open(tmp_path / "one") as store:
        for _, step in STEPS:
            step(HarnessMemory(store), AcpSessions(store, clock_ms=lambda: 5))
        expected = everything(store)
    for _, step in STEPS:
        with sealog.open(tmp_path / "many") as store:
            step(HarnessMemory(store), AcpSessions(store, clock_ms=lambda: 5))
    with sealog.open(tmp_path / "many") as store:
        assert everything(store) == expected


VICTIM = """
import sys
import sealog
from sealog.projections.acp import AcpSessions, AgentEntry
from sealog.projections.harness import (
    FeatureRecord, HarnessMemory, Message, MessageRole, ProgressEntry, SessionManifest
)

with sealog.open(sys.argv[1]) as store:
    memory, acp = HarnessMemory(store), AcpSessions(store)
    manifest = SessionManifest("s", active_branch="b", current_objective="o")
    memory.initialize_session_if_missing("s", manifest, [FeatureRecord("f", "", "", [], False)])
    number = len(memory.load_bootstrap_state("s").recent_progress)
    while True:
        memory.append_progress_entry("s", ProgressEntry(str(number), "", number))
        said = [Message(MessageRole.USER, f"{number} {at}") for at in range(3)]
        memory.append_transcript_messages("s", said)
        memory.update_feature_pass("s", "f", number % 2 == 1)
        acp.append_entries("t", "sid", [AgentEntry([f"{number} {at}"]) for at in range(3)])
        print(number, flush=True)
        number += 1
"""


def test_a_killed_process_loses_nothing_it_was_told(tmp_path: Path):
    path = tmp_path / "store"
    for answers in (3, 1, 7):
        with subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(path)], stdout=subprocess.PIPE, text=True
        ) as victim:
            assert victim.stdout is not None
            told = [int(victim.stdout.readline()) for _ in range(answers)][-1]
            victim.kill()
            told = max([told, *map(int, victim.stdout.read().split())])
            assert victim.wait(60) == -signal.SIGKILL
        with sealog.open(path) as store:
            memory, acp = HarnessMemory(store), AcpSessions(store)
            state = memory.load_bootstrap_state("s")
            runs = [int(entry.run_id) for entry in state.recent_progress]
            assert runs == list(range(len(runs)))
            assert len(runs) > told
            texts = [message.content for message in memory.load_transcript_messages("s")]
            assert texts[: 3 * told + 3] == [
                f"{number} {at}" for number in range(told + 1) for at in range(3)
            ]
            assert len(texts) % 3 == 0
            assert len(state.feature_list) == 1
            entries = acp.look("t", 3000).snapshot_entries
            assert len(entries) % 3 == 0
            assert AgentEntry([f"{told} 2"]) in entries
            # the next victim numbers its steps by the progress; make every step complete
            for number in range(len(texts) // 3, len(runs)):
                memory.append_transcript_messages(
                    "s", [type(HELLO)(HELLO.role, f"{number} {at}") for at in range(3)]
                )
