"""Claude Code: blocks, images, subagents."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from sealog.formats import UnknownFormatError, import_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import sealog
    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": "u",
        "sessionId": "main",
        "timestamp": "2026-02-10T21:11:56.906Z",
        "message": {"role": role, "content": content},
        **more,
    }


def shown(events: list[sealog.Event]) -> list[tuple[str, str]]:
    return [(str(event.kind), event.text) for event in events]


def test_each_block_is_an_event_and_the_record_comes_back(
    take: Take, events: Events, give: Callable[..., bytes]
) -> None:
    record = message(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "server_tool_use", "id": "t2", "name": "web_search", "input": {"query": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "t2",
                "content": [{"type": "web_search_result"}],
            },
            "bare",
            {"type": "new_block", "n": 1},
            5,
        ],
    )
    take(record)
    assert shown(events()) == [
        ("claude-code.thinking", "hm"),
        ("assistant-message", "I look."),
        ("tool-call", 'Bash {"command": "ls"}'),
        ("tool-call", 'web_search {"query": "x"}'),
        ("tool-result", "[web_search_result]"),
        ("assistant-message", "bare"),
        ("assistant-message", "[new_block]"),
        ("assistant-message", "5"),
    ]
    assert [(event.data.get("call_id"), event.data.get("tool")) for event in events()[2:5]] == [
        ("t1", "Bash"),
        ("t2", "web_search"),
        ("t2", None),
    ]
    assert {event.at for event in events()} == {1770757916906000000}
    assert json.loads(give()) == record


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"content": "done"}, ("tool-result", "done")),
        ({"content": "done", "is_error": False}, ("tool-result", "done")),
        ({"content": "no", "is_error": True}, ("tool-error", "no")),
        ({"content": [{"type": "text", "text": "one"}]}, ("tool-result", "one")),
        (
            {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            ("tool-result", "one\ntwo"),
        ),
        ({"content": [{"type": "image"}]}, ("tool-result", "[image]")),
        ({"content": []}, ("tool-result", "")),
        ({}, ("tool-result", "")),
        ({"content": {"a": 1}}, ("tool-result", '{"a": 1}')),
    ],
)
def test_results_and_errors_of_tools(
    take: Take, events: Events, give: Callable[..., bytes], block: dict[str, Any], expected: tuple[str, str]
) -> None:
    record = message("user", [{"type": "tool_result", "tool_use_id": "t1", **block}])
    take(record)
    assert shown(events()) == [expected]
    assert events()[0].data["call_id"] == "t1"
    assert json.loads(give()) == record


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (message("user", "hello"), ("user-message", "hello")),
        (message("assistant", "no", isApiErrorMessage=True), ("system-error", "no")),
        (message("user", None), ("claude-code.user", '{"role": "user", "content": null}')),
        (message("user", []), ("claude-code.user", '{"role": "user", "content": []}')),
        ({"type": "system", "sessionId": "s", "content": "note"}, ("system-message", "note")),
        ({"type": "system", "sessionId": "s", "content": "bad", "level": "error"}, ("system-error", "bad")),
        (
            {"type": "system", "sessionId": "s", "subtype": "api_error", "content": "bad"},
            ("system-error", "bad"),
        ),
        (
            {"type": "system", "sessionId": "s", "subtype": "turn"},
            ("claude-code.turn", '{"type": "system", "sessionId": "s", "subtype": "turn"}'),
        ),
        ({"type": "summary", "summary": "short", "leafUuid": "u"}, ("claude-code.summary", "short")),
        (
            {"type": "progress", "sessionId": "s"},
            ("claude-code.progress", '{"type": "progress", "sessionId": "s"}'),
        ),
        ({"type": "a/b", "sessionId": "s"}, ("claude-code.record", '{"type": "a/b", "sessionId": "s"}')),
    ],
)
def test_kinds_of_records(
    take: Take, events: Events, give: Callable[..., bytes], record: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert take(record).format == "claude-code"
    assert shown(events()) == [expected]
    assert json.loads(give()) == record


def test_an_image_becomes_a_file_once_and_comes_back_as_the_same_text(
    take: Take, events: Events, store: sealog.Store, give: Callable[..., bytes]
) -> None:
    text = base64.b64encode(PNG).decode()
    source = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [source]}
    records = [
        message("user", [{"type": "text", "text": "see"}, source]),
        message(
            "user", [result], toolUseResult={"type": "image", "file": {"base64": text, "type": "image/png"}}
        ),
    ]
    assert take(*records).attachments == 2
    assert [str(event.kind) for event in events()] == [
        "attachment",
        "user-message",
        "user-message",
        "attachment",
        "tool-result",
    ]
    for attachment in store.open_session("chat").attachments():
        assert attachment.media_type == "image/png"
        assert attachment.file_name.endswith(".png")
        assert attachment.bytes == PNG
    with open(store.open_session("chat").path + "/log", "rb") as log:
        assert text[:40].encode() not in log.read()
    assert [json.loads(line) for line in give().splitlines()] == records


def test_base64_in_another_spelling_is_shown_and_kept(
    take: Take, store: sealog.Store, give: Callable[..., bytes]
) -> None:
    text = base64.encodebytes(PNG).decode()
    record = message(
        "user", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": text}}]
    )
    take(record)
    assert [attachment.bytes for attachment in store.open_session("chat").attachments()] == [PNG]
    assert json.loads(give()) == record


class TestSubagents:
    @pytest.fixture
    def project(self, file: Callable[..., Path]) -> Callable[..., Path]:
        """Return a function that makes a main file with a subagent's at the given place."""

        def make(place: str, session_id: str = "main") -> Path:
            file(
                message("user", "task", agentId="a1", sessionId=session_id, isSidechain=True),
                name=f"project/{place}",
            )
            return file(message("user", "hello"), name="project/main.jsonl")

        return make

    @pytest.mark.parametrize(
        "place", ["main/subagents/agent-a1.jsonl", "main/agent-a1.jsonl", "agent-a1.jsonl"]
    )
    def test_a_subagent_becomes_a_session_of_its_own(
        self,
        project: Callable[..., Path],
        store: sealog.Store,
        events: Events,
        give: Callable[..., bytes],
        place: str,
    ) -> None:
        path = project(place)
        report = import_file(store, path)
        assert report.records == 1
        assert [inner.session_id for inner in report.related] == ["main--agent-a1"]
        assert report.related[0].added == 1
        assert store.session_ids() == ["main", "main--agent-a1"]
        labels = store.open_session("main--agent-a1").header.labels
        assert labels == {"format": "claude-code", "file": "agent-a1.jsonl", "parent": "main", "agent": "a1"}
        assert shown(events("main--agent-a1")) == [("user-message", "task")]
        assert json.loads(give("main--agent-a1")) == json.loads(path.parent.joinpath(place).read_bytes())
        assert import_file(store, path).related[0].known == 1

    def test_the_chosen_id_is_that_of_the_parent(
        self, project: Callable[..., Path], store: sealog.Store
    ) -> None:
        import_file(store, project("main/subagents/agent-a1.jsonl"), session_id="mine")
        assert store.session_ids() == ["mine", "mine--agent-a1"]
        assert store.open_session("mine--agent-a1").header.labels["parent"] == "mine"

    def test_a_subagent_of_another_session_beside_it_is_left_out(
        self, project: Callable[..., Path], store: sealog.Store
    ) -> None:
        assert import_file(store, project("agent-a1.jsonl", "other")).related == []
        assert import_file(store, project("other/agent-a1.jsonl")).related == []

    def test_a_subagent_can_be_imported_alone(
        self, project: Callable[..., Path], store: sealog.Store
    ) -> None:
        path = project("main/subagents/agent-a1.jsonl").parent / "main/subagents/agent-a1.jsonl"
        report = import_file(store, path)
        assert (report.session_id, report.related) == ("agent-a1", [])
        assert store.open_session("agent-a1").header.labels["parent"] == "main"

    def test_a_subagent_whose_session_is_taken_is_reported(
        self, project: Callable[..., Path], store: sealog.Store, file: Callable[..., Path]
    ) -> None:
        place = "main/subagents/agent-a1.jsonl"
        path = project(place)
        import_file(store, path)
        file(*(message("user", f"other {n}") for n in range(4)), name=f"project/{place}")
        report = import_file(store, path)
        assert report.related[0].conflicting == 1
        file(*(message("user", f"other {n}") for n in range(3)), name="project/main/agent-a2.jsonl")
        import_file(store, path)
        file(*(message("user", f"more {n}") for n in range(4)), name="project/main/agent-a2.jsonl")
        report = import_file(store, path)
        assert len(report.related) == 1
        assert "of another file" in report.problems[0].reason

    def test_a_subagent_file_that_cannot_be_named_is_reported(
        self, project: Callable[..., Path], store: sealog.Store
    ) -> None:
        report = import_file(store, project("main/subagents/agent-a b.jsonl"))
        assert report.related == []
        assert "was not imported" in report.problems[0].reason
        assert store.session_ids() == ["main"]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "text": "x"},
        {"type": "user", "message": "x"},
        {"type": ["user"], "message": {"role": "user"}},
        {"type": "user", "message": {"role": "tool"}},
        {"type": "event_msg", "payload": {}, "sessionId": "s"},
        {"sessionId": "s"},
    ],
)
def test_other_records_are_not_taken_for_its_own(take: Take, record: dict[str, Any]) -> None:
    try:
        assert take(record).format != "claude-code"
    except UnknownFormatError:
        pytest.fail("JSON Lines take every object")


def test_it_is_told_after_lines_of_other_kinds(take: Take) -> None:
    assert (
        take({"type": "file-history-snapshot", "messageId": "m", "isSnapshotUpdate": False}).format
        == "claude-code"
    )
    assert (
        take(b'torn\n[]\n{"a":1}\n' + json.dumps(message("user", "x")).encode(), name="b.jsonl").format
        == "claude-code"
    )
