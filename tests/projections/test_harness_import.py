"""State files of the older harness memory: what is taken, what is refused, and where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealog
from sealog.projections import HarnessMemory
from sealog.projections.harness import FeatureRecord, Message, MessageRole

from .kit import CHECKPOINT, HELLO, MANIFEST, PROGRESS, feature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EMPTY: dict[str, Any] = {
    "manifest": None,
    "feature_list": [],
    "recent_progress": [],
    "checkpoints": [],
    "transcript": [],
}
OLD_MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "harness_version": "v0",
    "active_branch": "b",
    "current_objective": "o",
    "last_known_good_commit": None,
    "init_plan": None,
    "metadata": {},
}
OLD_FEATURE = {"id": "f", "category": "c", "description": "d", "steps": ["s"], "passes": True}
OLD_PROGRESS = {"run_id": "r", "summary": "s", "created_at_secs": 1, "created_at_nanos": 2}
OLD_RUN = {
    "run_id": "r",
    "started_at_secs": 1,
    "started_at_nanos": 2,
    "completed_at_secs": None,
    "completed_at_nanos": None,
    "status": "failed",
    "note": None,
}
COMMAND = {"kind": "command", "program": "p", "args": []}
SHELL = {"kind": "shell", "shell": "sh", "script": "s"}
HEX = "73657373696f6e"  # of "session"


@pytest.fixture
def memory(store: sealog.Store) -> HarnessMemory:
    return HarnessMemory(store)


def bare(**fields: Any) -> bytes:
    return json.dumps({**EMPTY, **fields}).encode()


def with_plan(*steps: Any) -> bytes:
    return bare(manifest={**OLD_MANIFEST, "init_plan": {"steps": list(steps)}})


def without(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}


REFUSED: list[tuple[bytes, str]] = [
    (b"", "the document"),
    (b"\xff", "the document"),
    (b"\0" * 413, "the document"),
    (b"null", "the document"),
    (b"5", "the document"),
    (bare() + b"}", "the document"),
    (bare()[:-1], "the document"),
    (b"\xef\xbb\xbf" + bare(), "the document"),
    (bare().replace(b"null", b"nul"), "the document"),
    (bare().replace(b"null", b"NaN"), "the document"),
    (bare(x=1)[:-1] + b",}", "the document"),
    (b'{"manifest": null, "manifest": null}', "manifest"),
    (b'{"mani\\u0066est": null, "manifest": null}', "manifest"),
    *((json.dumps(without(EMPTY, name)).encode(), name) for name in EMPTY if name != "manifest"),
    *((bare(**{name: None}), name) for name in EMPTY if name != "manifest"),
    *((bare(**{name: {}}), name) for name in EMPTY if name != "manifest"),
    (bare(manifest=[]), "manifest.schema_version"),
    (bare(manifest="x"), "manifest"),
    *((bare(manifest=without(OLD_MANIFEST, name)), f"manifest.{name}") for name in list(OLD_MANIFEST)[:4]),
    (bare(manifest=without(OLD_MANIFEST, "metadata")), "manifest.metadata"),
    *((bare(manifest={**OLD_MANIFEST, name: None}), f"manifest.{name}") for name in list(OLD_MANIFEST)[:4]),
    *(
        (bare(manifest={**OLD_MANIFEST, "schema_version": value}), "manifest.schema_version")
        for value in (-1, 2**32, 1.0, "1", True, 10**30)
    ),
    (bare(manifest={**OLD_MANIFEST, "metadata": {"a": 1}}), "manifest.metadata.a"),
    (bare(manifest={**OLD_MANIFEST, "metadata": []}), "manifest.metadata"),
    (bare(manifest={**OLD_MANIFEST, "last_known_good_commit": 5}), "manifest.last_known_good_commit"),
    (bare(manifest={**OLD_MANIFEST, "active_branch": "\ud800"}), "manifest.active_branch"),
    (bare(manifest={**OLD_MANIFEST, "init_plan": {}}), "manifest.init_plan.steps"),
    (with_plan({}), "manifest.init_plan.steps[0].kind"),
    (with_plan(COMMAND, {**SHELL, "shell": "zsh"}), "manifest.init_plan.steps[1].shell"),
    (with_plan({**SHELL, "shell": {"sh": None}}), "manifest.init_plan.steps[0].shell"),
    (with_plan({**COMMAND, "kind": "Command"}), "manifest.init_plan.steps[0].kind"),
    (with_plan(without(COMMAND, "args")), "manifest.init_plan.steps[0].args"),
    (with_plan(["command", "p", [], 1]), "manifest.init_plan.steps[0]"),
    (with_plan([]), "manifest.init_plan.steps[0].kind"),
    (with_plan({**COMMAND, "more": "\ud800"}), "manifest.init_plan.steps[0].more"),
    (
        with_plan(COMMAND).replace(b'"kind": ', b'"kind": "command", "kind": '),
        "manifest.init_plan.steps[0].kind",
    ),
    *((bare(feature_list=[without(OLD_FEATURE, name)]), f"feature_list[0].{name}") for name in OLD_FEATURE),
    *(
        (bare(feature_list=[{**OLD_FEATURE, "passes": value}]), "feature_list[0].passes")
        for value in (1, 0, "true", None)
    ),
    (bare(feature_list=[OLD_FEATURE, {**OLD_FEATURE, "steps": [1]}]), "feature_list[1].steps[0]"),
    *((bare(recent_progress=[without(OLD_PROGRESS, n)]), f"recent_progress[0].{n}") for n in OLD_PROGRESS),
    *(
        (
            bare(recent_progress=[{**OLD_PROGRESS, "created_at_secs": value}]),
            "recent_progress[0].created_at_secs",
        )
        for value in (-1, -(2**63), 2**63, 1.5, 1000.0, "10", None, 10**23, False)
    ),
    (
        bare(recent_progress=[OLD_PROGRESS]).replace(b'secs": 1', b'secs": -0'),
        "recent_progress[0].created_at_secs",
    ),
    (
        bare(recent_progress=[OLD_PROGRESS]).replace(b'secs": 1', b'secs": 1e3'),
        "recent_progress[0].created_at_secs",
    ),
    *(
        (
            bare(recent_progress=[OLD_PROGRESS, {**OLD_PROGRESS, "created_at_nanos": value}]),
            "recent_progress[1].created_at_nanos",
        )
        for value in (-1, 10**9, 2**63 - 1)
    ),
    *(
        (bare(checkpoints=[without(OLD_RUN, name)]), f"checkpoints[0].{name}")
        for name in ("run_id", "started_at_secs", "started_at_nanos", "status")
    ),
    (bare(checkpoints=[{**OLD_RUN, "completed_at_secs": 5}]), "checkpoints[0].completed_at_nanos"),
    (bare(checkpoints=[{**OLD_RUN, "completed_at_nanos": 5}]), "checkpoints[0].completed_at_secs"),
    (
        bare(checkpoints=[without({**OLD_RUN, "completed_at_secs": 5}, "completed_at_nanos")]),
        "checkpoints[0].completed_at_nanos",
    ),
    (
        bare(checkpoints=[{**OLD_RUN, "completed_at_secs": 5, "completed_at_nanos": -2}]),
        "checkpoints[0].completed_at_nanos",
    ),
    (
        bare(checkpoints=[{**OLD_RUN, "completed_at_secs": -5, "completed_at_nanos": 0}]),
        "checkpoints[0].completed_at_secs",
    ),
    (bare(checkpoints=[{**OLD_RUN, "started_at_nanos": 10**9}]), "checkpoints[0].started_at_nanos"),
    (bare(checkpoints=[{**OLD_RUN, "status": "odd"}]), "checkpoints[0].status"),
    (bare(checkpoints=[{**OLD_RUN, "status": {"failed": None}}]), "checkpoints[0].status"),
    (bare(checkpoints=[{**OLD_RUN, "note": []}]), "checkpoints[0].note"),
    (bare(transcript=[{"role": "robot", "content": "x"}]), "transcript[0].role"),
    (bare(transcript=[{"role": "User", "content": "x"}]), "transcript[0].role"),
    (bare(transcript=[{"role": "user"}]), "transcript[0].content"),
    (bare(transcript=[{"role": "user", "content": None}]), "transcript[0].content"),
    (bare(transcript=[{"role": "user", "content": "X"}]).replace(b"X", b"\xff"), "transcript[0].content"),
    (json.dumps([None, [], [], []]).encode(), "transcript"),
    (json.dumps([None, [], [], [], [], 1]).encode(), "the document"),
    (json.dumps([]).encode(), "manifest"),
    (b"[" * 200_000, "the document"),
]


@pytest.mark.parametrize(("data", "field"), REFUSED)
def test_a_file_is_refused_with_its_name_and_the_field(memory: HarnessMemory, data: bytes, field: str):
    memory.append_transcript_messages("session", [HELLO])
    before = memory.export_state("session")
    with pytest.raises(sealog.InvalidStateError) as refused:
        memory.import_state("session", data)
    assert (refused.value.file, refused.value.field) == (f"sessions/{HEX}.json", field)
    assert str(refused.value).startswith(f"sessions/{HEX}.json: {field}: ")
    assert memory.export_state("session") == before
    with pytest.raises(sealog.InvalidStateError, match=r"^here\.json: "):
        memory.import_state("new", data, source="here.json")
    assert memory.session_ids() == ["session"]


TAKEN: list[tuple[bytes, dict[str, Any]]] = [
    (bare(), {}),
    (b" \t\r\n" + bare() + b"\n", {}),
    (json.dumps(without(EMPTY, "manifest")).encode(), {}),
    (bare(unknown={"deep": [0.5, "\ud800"]}).replace(b"0.5", b"1e400"), {}),
    (bare(unknown=1).replace(b"1", b"1e999"), {}),
    (bare(unknown="X").replace(b"X", b"\xff\xed\xa0\x80"), {}),
    (bare(unknown=1)[:-1] + b', "unknown": 2}', {}),
    (bare(unknown=1).replace(b"1", b"[" * 300 + b"]" * 300), {}),
    (bare().replace(b"manifest", b"m\\u0061nifest"), {}),
    (json.dumps([None, [], [], [], []]).encode(), {}),
    (bare(manifest=OLD_MANIFEST), {"manifest": OLD_MANIFEST}),
    (bare(manifest=list(OLD_MANIFEST.values())), {"manifest": OLD_MANIFEST}),
    (
        bare(manifest=without(without(OLD_MANIFEST, "init_plan"), "last_known_good_commit")),
        {"manifest": OLD_MANIFEST},
    ),
    (
        bare(manifest={**OLD_MANIFEST, "schema_version": 2**32 - 1}),
        {"manifest": {**OLD_MANIFEST, "schema_version": 2**32 - 1}},
    ),
    (
        bare(manifest={**OLD_MANIFEST, "metadata": {"a": "1", "A": "2"}}).replace(b'"A"', b'"a"'),
        {"manifest": {**OLD_MANIFEST, "metadata": {"a": "2"}}},
    ),
    (
        with_plan(COMMAND, SHELL, ["shell", "cmd", "dir"], {**COMMAND, "more": [1.5]}, {**SHELL, "a": 1}),
        {
            "manifest": {
                **OLD_MANIFEST,
                "init_plan": {
                    "steps": [
                        COMMAND,
                        SHELL,
                        {"kind": "shell", "shell": "cmd", "script": "dir"},
                        COMMAND,
                        SHELL,
                    ]
                },
            }
        },
    ),
    (bare(feature_list=[OLD_FEATURE, OLD_FEATURE]), {"feature_list": [OLD_FEATURE, OLD_FEATURE]}),
    (bare(feature_list=[list(OLD_FEATURE.values())]), {"feature_list": [OLD_FEATURE]}),
    (
        bare(recent_progress=[{**OLD_PROGRESS, "created_at_secs": 2**63 - 1, "created_at_nanos": 10**9 - 1}]),
        {"recent_progress": [{**OLD_PROGRESS, "created_at_secs": 2**63 - 1, "created_at_nanos": 10**9 - 1}]},
    ),
    (
        bare(checkpoints=[without(without(OLD_RUN, "note"), "completed_at_secs")]),
        {"checkpoints": [OLD_RUN]},
    ),
    (
        bare(transcript=[{"role": role, "content": "\ud83d\ude00\0"} for role in MessageRole]),
        {"transcript": [{"role": role, "content": "😀\0"} for role in MessageRole]},
    ),
]


@pytest.mark.parametrize(("data", "changes"), TAKEN)
def test_what_the_older_program_reads_is_taken(memory: HarnessMemory, data: bytes, changes: dict[str, Any]):
    memory.initialize_session_if_missing("s", MANIFEST, [feature("old")], PROGRESS, CHECKPOINT)
    memory.append_transcript_messages("s", [HELLO])
    memory.import_state("s", data)
    exported = json.loads(memory.export_state("s"))
    assert exported == {**EMPTY, **changes}
    assert list(exported) == list(EMPTY)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
INTS = {
    "secs": st.integers(0, 2**63 - 1),
    "nanos": st.integers(0, 10**9 - 1),
}
STATES = st.fixed_dictionaries(
    {
        "manifest": st.none()
        | st.fixed_dictionaries(
            {
                "schema_version": st.integers(0, 2**32 - 1),
                "harness_version": TEXTS,
                "active_branch": TEXTS,
                "current_objective": TEXTS,
                "last_known_good_commit": st.none() | TEXTS,
                "init_plan": st.none()
                | st.fixed_dictionaries({"steps": st.lists(st.sampled_from([COMMAND, SHELL]), max_size=3)}),
                "metadata": st.dictionaries(TEXTS, TEXTS, max_size=3),
            }
        ),
        "feature_list": st.lists(
            st.fixed_dictionaries(
                {
                    "id": TEXTS,
                    "category": TEXTS,
                    "description": TEXTS,
                    "steps": st.lists(TEXTS, max_size=3),
                    "passes": st.booleans(),
                }
            ),
            max_size=3,
        ),
        "recent_progress": st.lists(
            st.fixed_dictionaries(
                {
                    "run_id": TEXTS,
                    "summary": TEXTS,
                    "created_at_secs": INTS["secs"],
                    "created_at_nanos": INTS["nanos"],
                }
            ),
            max_size=3,
        ),
        "checkpoints": st.lists(
            st.tuples(
                st.fixed_dictionaries(
                    {"run_id": TEXTS, "started_at_secs": INTS["secs"], "started_at_nanos": INTS["nanos"]}
                ),
                st.fixed_dictionaries(
                    {"completed_at_secs": INTS["secs"], "completed_at_nanos": INTS["nanos"]}
                )
                | st.just({"completed_at_secs": None, "completed_at_nanos": None}),
                st.fixed_dictionaries(
                    {
                        "status": st.sampled_from(["in_progress", "succeeded", "failed"]),
                        "note": st.none() | TEXTS,
                    }
                ),
            ).map(lambda parts: {**parts[0], **parts[1], **parts[2]}),
            max_size=3,
        ),
        "transcript": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS}
            ),
            max_size=4,
        ),
    }
)


@pytest.fixture(scope="module")
def shared_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarnessMemory]:
    with sealog.open(tmp_path_factory.mktemp("store")) as store:
        yield HarnessMemory(store)


@settings(deadline=None, max_examples=60)
@given(state=STATES, other=STATES, ascii_only=st.booleans())
def test_a_state_comes_back_as_it_was(
    shared_memory: HarnessMemory, state: dict[str, Any], other: dict[str, Any], *, ascii_only: bool
):
    for each in (other, state):
        shared_memory.import_state("s", json.dumps(each, ensure_ascii=ascii_only).encode())
        assert json.loads(shared_memory.export_state("s")) == each


def test_an_import_is_one_batch_however_many_messages(memory: HarnessMemory, store: sealog.Store):
    texts = [{"role": "user", "content": str(number)} for number in range(70_000)]
    progress = [OLD_PROGRESS] * 1000
    memory.import_state("s", bare(transcript=texts, recent_progress=progress))
    memory.append_transcript_messages("s", [HELLO])
    assert [message.content for message in memory.load_transcript_messages("s")] == [
        *map(str, range(70_000)),
        "hello",
    ]
    assert len(memory.load_bootstrap_state("s").recent_progress) == 1000
    assert len(store.open_session("s")) == 72


def test_life_goes_on_after_an_import(memory: HarnessMemory):
    memory.import_state("s", bare(feature_list=[OLD_FEATURE], transcript=[{"role": "tool", "content": "x"}]))
    assert not memory.is_initialized("s")
    memory.update_feature_pass("s", "f", False)
    memory.append_transcript_messages("s", [HELLO])
    assert memory.load_bootstrap_state("s").feature_list == [FeatureRecord("f", "c", "d", ["s"], False)]
    assert memory.load_transcript_messages("s") == [Message(MessageRole.TOOL, "x"), HELLO]
    assert memory.initialize_session_if_missing("s", MANIFEST, [])
    assert memory.load_transcript_messages("s") == [Message(MessageRole.TOOL, "x"), HELLO]


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_a_file_may_be_any_buffer(memory: HarnessMemory, convert: Callable[[bytes], Any]):
    memory.import_state("s", convert(bare()))
    assert json.loads(memory.export_state("s")) == EMPTY
