"""The harness memory: what its methods refuse and keep, alone and among many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import sealog
from sealog.projections import HarnessMemory
from sealog.projections.harness import (
    BootstrapState,
    FeatureRecord,
    InitCommand,
    InitPlan,
    InitShell,
    InitShellScript,
    Message,
    MessageRole,
    ProgressEntry,
    RunCheckpoint,
    RunStatus,
    SessionManifest,
)

from .kit import CHECKPOINT, HELLO, MANIFEST, PROGRESS, feature

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

END_NS = 2**63 * 10**9


@pytest.fixture
def memory(store: sealog.Store) -> HarnessMemory:
    return HarnessMemory(store)


def plan() -> InitPlan:
    return InitPlan([InitCommand("git", ["status"]), InitShellScript(InitShell.PWSH, "dir")])


def test_types_have_the_defaults_of_the_original():
    manifest = SessionManifest("s", active_branch="b", current_objective="o")
    assert msgspec.to_builtins(manifest) == {
        "session_id": "s",
        "schema_version": 1,
        "harness_version": "v0",
        "active_branch": "b",
        "current_objective": "o",
        "last_known_good_commit": None,
        "init_plan": None,
        "metadata": {},
    }
    assert [step["kind"] for step in msgspec.to_builtins(plan())["steps"]] == ["command", "shell"]
    assert (CHECKPOINT.completed_at_ns, CHECKPOINT.note) == (None, None)


def test_an_unknown_session_is_empty_and_stays_unknown(memory: HarnessMemory, store: sealog.Store):
    assert memory.load_bootstrap_state("s") == BootstrapState()
    assert memory.load_transcript_messages("s") == []
    assert not memory.is_initialized("s")
    with pytest.raises(sealog.FeatureNotFoundError, match="feature 'f' not found") as missing:
        memory.update_feature_pass("s", "f", True)
    assert (missing.value.session_id, missing.value.feature_id) == ("s", "f")
    assert isinstance(missing.value, LookupError)
    with pytest.raises(sealog.SessionNotFoundError):
        memory.export_state("s")
    assert store.session_ids() == []


def test_a_manifest_comes_back_under_the_key_it_is_asked_for(memory: HarnessMemory):
    manifest = msgspec.structs.replace(MANIFEST, session_id="other", init_plan=plan(), metadata={"a": "b"})
    memory.save_manifest("Any key", manifest)
    loaded = memory.load_bootstrap_state("Any key").manifest
    assert loaded == msgspec.structs.replace(manifest, session_id="Any key")
    assert manifest.session_id == "other"


def test_an_empty_batch_of_messages_makes_the_session_only(memory: HarnessMemory, store: sealog.Store):
    memory.append_transcript_messages("s", [])
    assert (store.session_ids(), len(store.open_session("s"))) == (["s"], 0)
    assert not memory.is_initialized("s")
    assert memory.export_state("s").startswith(b'{\n  "manifest": null,')


def test_what_is_handed_out_is_the_callers_own(memory: HarnessMemory):
    manifest = msgspec.structs.replace(MANIFEST, init_plan=plan(), metadata={"a": "b"})
    features = [feature("f")]
    memory.initialize_session_if_missing("s", manifest, features, PROGRESS, CHECKPOINT)
    manifest.metadata["a"] = "changed"
    features[0].steps.append("changed")
    before = memory.export_state("s")
    state = memory.load_bootstrap_state("s")
    assert state.manifest is not None
    assert state.manifest.init_plan is not None
    state.manifest.metadata.clear()
    state.manifest.init_plan.steps.clear()
    state.feature_list[0].steps.clear()
    state.feature_list[0].passes = True
    state.feature_list.clear()
    state.recent_progress.clear()
    state.checkpoints.clear()
    memory.load_transcript_messages("s").append(HELLO)
    assert memory.export_state("s") == before
    assert b"changed" not in before


BAD_TIMES = [-1, -(10**30), END_NS, END_NS + 1, True, 1.0, "1", None]
BAD: list[tuple[str, Callable[[HarnessMemory], Any], str]] = [
    *(
        (
            f"progress at {time!r}",
            lambda memory, time=time: memory.append_progress_entry("s", ProgressEntry("r", "s", time)),
            "progress_entry",
        )
        for time in BAD_TIMES
    ),
    *(
        (
            f"run from {time!r}",
            lambda memory, time=time: memory.record_run_checkpoint(
                "s", RunCheckpoint("r", time, status=RunStatus.FAILED)
            ),
            "checkpoint",
        )
        for time in BAD_TIMES
    ),
    *(
        (
            f"run to {time!r}",
            lambda memory, time=time: memory.record_run_checkpoint(
                "s", RunCheckpoint("r", 0, completed_at_ns=time, status=RunStatus.FAILED)
            ),
            "checkpoint",
        )
        for time in BAD_TIMES[:-1]
    ),
    *(
        (
            f"schema {version}",
            lambda memory, version=version: memory.save_manifest(
                "s", msgspec.structs.replace(MANIFEST, schema_version=version)
            ),
            "manifest",
        )
        for version in (-1, 2**32, True, "1", 2**70)
    ),
    (
        "shell",
        lambda memory: memory.save_manifest(
            "s",
            msgspec.structs.replace(MANIFEST, init_plan=InitPlan([InitShellScript("zsh", "x")])),  # type: ignore[arg-type]
        ),
        "manifest",
    ),
    ("nothing", lambda memory: memory.save_manifest("s", None), "manifest"),
    ("a foreign object", lambda memory: memory.save_manifest("s", object()), "manifest"),
    (
        "passes",
        lambda memory: memory.replace_feature_list("s", [feature("a"), feature("b", passes=1)]),
        "[1]",
    ),
    ("role", lambda memory: memory.append_transcript_messages("s", [HELLO, Message("bot", "x")]), "[1]"),
    ("surrogate", lambda memory: memory.append_transcript_messages("s", [Message("user", "\ud800")]), "text"),
    (
        "surrogate in metadata",
        lambda memory: memory.save_manifest("s", msgspec.structs.replace(MANIFEST, metadata={"\ud800": ""})),
        "metadata",
    ),
    (
        "init with a bad time",
        lambda memory: memory.initialize_session_if_missing(
            "s", MANIFEST, [feature("f")], ProgressEntry("r", "s", -1)
        ),
        "created_at_ns predates the epoch",
    ),
]


@pytest.mark.parametrize(("call", "place"), [pytest.param(*case[1:], id=case[0]) for case in BAD])
def test_what_cannot_be_stored_is_refused_before_anything_is_written(
    memory: HarnessMemory, store: sealog.Store, call: Callable[[HarnessMemory], Any], place: str
):
    with pytest.raises(sealog.InvalidEventError) as refused:
        call(memory)
    assert place in str(refused.value)
    assert store.session_ids() == []
    memory.append_transcript_messages("s", [HELLO])
    with pytest.raises(sealog.InvalidEventError):
        call(memory)
    assert len(store.open_session("s")) == 1


def test_batches_over_the_limit_leave_no_session(memory: HarnessMemory, store: sealog.Store):
    with pytest.raises(sealog.LimitExceededError):
        memory.append_transcript_messages("s", [Message(MessageRole.USER, "x" * 2**24)] * 5)
    assert store.session_ids() == []


def test_times_keep_every_nanosecond(memory: HarnessMemory):
    times = [0, 1, 10**9 - 1, 10**9, 2**63, 2**64, END_NS - 1]
    for time in times:
        memory.append_progress_entry("s", ProgressEntry("r", "s", time))
        memory.record_run_checkpoint(
            "s", RunCheckpoint("r", time, completed_at_ns=time, status=RunStatus.FAILED)
        )
    state = memory.load_bootstrap_state("s")
    assert [entry.created_at_ns for entry in state.recent_progress] == times
    assert [(run.started_at_ns, run.completed_at_ns) for run in state.checkpoints] == [
        (time, time) for time in times
    ]


def test_more_messages_than_fit_a_frame_are_one_batch_still(memory: HarnessMemory, store: sealog.Store):
    many = [Message(MessageRole.TOOL, str(number)) for number in range(70_000)]
    memory.append_transcript_messages("s", [HELLO])
    memory.append_transcript_messages("s", iter(many))
    memory.append_transcript_messages("s", [HELLO])
    assert memory.load_transcript_messages("s") == [HELLO, *many, HELLO]
    assert len(store.open_session("s")) == 72


def test_messages_far_apart_are_all_found(memory: HarnessMemory):
    expected: list[Message] = []
    for gap in (0, 1, 32, 33, 40, 5):
        session = memory._store.open_session("s") if expected else None
        if session is not None:
            session.append_many([sealog.Event("other.kind", "") for _ in range(gap)])
        message = Message(MessageRole.USER, f"after {gap}")
        memory.append_transcript_messages("s", [message])
        expected.append(message)
        assert memory.load_transcript_messages("s") == expected


def test_unknown_kinds_are_passed_over_and_counted_in_positions(memory: HarnessMemory, store: sealog.Store):
    memory.save_manifest("s", MANIFEST)
    session = store.open_session("s")
    session.append("harness.from-the-future", "", {"x": 1})
    session.append("future_event", "")
    session.append("harness.feature-updated", "", {"id": "nobody", "passes": True})
    memory.replace_feature_list("s", [feature("f")])
    memory.update_feature_pass("s", "f", True)
    assert memory.load_bootstrap_state("s").feature_list == [feature("f", passes=True)]
    assert len(session) == 6


def test_an_event_that_was_not_made_here_is_named(memory: HarnessMemory, store: sealog.Store):
    memory.save_manifest("s", MANIFEST)
    store.open_session("s").append("harness.progress-appended", "", {"run_id": 5})
    for _ in range(2):
        with pytest.raises(sealog.InvalidStateError, match=r"event 1 \(harness\.progress-appended\)"):
            memory.is_initialized("s")
    memory.append_progress_entry("s", PROGRESS)


def test_a_bad_event_does_not_fail_later_appends(memory: HarnessMemory, store: sealog.Store):
    memory.save_manifest("s", MANIFEST)
    store.open_session("s").append("harness.progress-appended", "", None)
    memory.append_transcript_messages("s", [HELLO] * 2000)
    assert len(store.open_session("s")) == 2002


def test_a_read_only_store_loads_and_refuses_to_write(store: sealog.Store, tmp_path: Path):
    HarnessMemory(store).initialize_session_if_missing("s", MANIFEST, [feature("f")])
    store.close()
    with sealog.open(tmp_path / "store", read_only=True) as reader:
        memory = HarnessMemory(reader)
        assert memory.is_initialized("s")
        assert memory.load_bootstrap_state("s").feature_list == [feature("f")]
        assert memory.load_transcript_messages("s") == []
        assert memory.session_ids() == ["s"]
        with pytest.raises(sealog.StoreReadOnlyError):
            memory.append_progress_entry("s", PROGRESS)
        with pytest.raises(sealog.StoreReadOnlyError):
            memory.append_progress_entry("new", PROGRESS)


def test_a_sealed_session_loads_and_takes_nothing(store: sealog.Store):
    memory = HarnessMemory(store)
    memory.save_manifest("s", MANIFEST)
    store.open_session("s").seal()
    assert memory.is_initialized("s")
    assert memory.initialize_session_if_missing("s", MANIFEST, []) is False
    with pytest.raises(sealog.SessionSealedError):
        memory.append_progress_entry("s", PROGRESS)


def test_a_deleted_session_is_unknown_and_can_be_made_anew(store: sealog.Store):
    memory = HarnessMemory(store)
    memory.save_manifest("s", MANIFEST)
    store.delete_session("s")
    assert memory.load_bootstrap_state("s") == BootstrapState()
    assert memory.initialize_session_if_missing("s", MANIFEST, [feature("new")])
    assert memory.load_bootstrap_state("s").feature_list == [feature("new")]


def test_records_are_kept_in_order_and_none_is_merged(store: sealog.Store):
    memory = HarnessMemory(store)
    for number in range(50):
        memory.append_progress_entry("s", PROGRESS)
        memory.record_run_checkpoint("s", msgspec.structs.replace(CHECKPOINT, note=str(number)))
    state = memory.load_bootstrap_state("s")
    assert state.recent_progress == [PROGRESS] * 50
    assert [run.note for run in state.checkpoints] == [str(number) for number in range(50)]


def test_dicts_of_the_fields_are_taken_as_well(store: sealog.Store):
    memory = HarnessMemory(store)
    fields: Any = {"id": "f", "category": "c", "description": "d", "steps": [], "passes": False}
    memory.replace_feature_list("s", [fields])
    assert memory.load_bootstrap_state("s").feature_list == [FeatureRecord("f", "c", "d", [], False)]
