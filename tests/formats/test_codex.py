"""Codex rollouts."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import sealog
    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]

import pytest


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-02-10T21:11:56.906Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **payload)


META = line("session_meta", id="019a", cwd="/x", cli_version="0.1.0")

CASES: list[tuple[dict[str, Any], list[tuple[str, str, str | None]]]] = [
    (
        item("message", role="user", content=[{"type": "input_text", "text": "hi"}]),
        [("user-message", "hi", None)],
    ),
    (item("message", role="developer", content="rules"), [("system-message", "rules", None)]),
    (
        item(
            "message",
            role="assistant",
            content=[{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}],
        ),
        [("assistant-message", "a", None), ("assistant-message", "b", None)],
    ),
    (item("message", role="critic", content=[]), [("codex.critic", "", None)]),
    (
        item("reasoning", summary=[{"type": "summary_text", "text": "think"}], encrypted_content="x"),
        [("codex.reasoning", "think", None)],
    ),
    (item("reasoning", summary=[]), [("codex.reasoning", "", None)]),
    (
        item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
        [("tool-call", 'shell {"command":["ls"]}', "c1")],
    ),
    (
        item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
        [("tool-call", "apply_patch *** Begin", "c2")],
    ),
    (
        item("local_shell_call", call_id="c3", action={"type": "exec"}),
        [("tool-call", 'local_shell_call {"type": "exec"}', "c3")],
    ),
    (
        item("web_search_call", id="c4", action={"query": "q"}),
        [("tool-call", 'web_search_call {"query": "q"}', "c4")],
    ),
    (item("function_call_output", call_id="c1", output="files"), [("tool-result", "files", "c1")]),
    (
        item("function_call_output", call_id="c1", output={"content": "no", "success": False}),
        [("tool-error", "no", "c1")],
    ),
    (
        item("function_call_output", call_id="c1", output=[{"type": "input_text", "text": "a"}]),
        [("tool-result", "a", "c1")],
    ),
    (item("function_call_output", call_id="c1", output={"content": None}), [("tool-result", "", "c1")]),
    (item("function_call_output", call_id="c1"), [("tool-result", "", "c1")]),
    (item("ghost_snapshot", n=1), [("codex.ghost_snapshot", '{"type": "ghost_snapshot", "n": 1}', None)]),
    (line("event_msg", type="user_message", message="hi"), [("codex.user_message", "hi", None)]),
    (line("event_msg", type="agent_reasoning", text="think"), [("codex.agent_reasoning", "think", None)]),
    (line("event_msg", type="error", message="bad"), [("system-error", "bad", None)]),
    (line("event_msg", type="token_count"), [("codex.token_count", '{"type": "token_count"}', None)]),
    (line("event_msg"), [("codex.record", "{}", None)]),
    (line("turn_context", model="m"), [("codex.turn_context", '{"model": "m"}', None)]),
    (line("compacted", message="short"), [("codex.compacted", "short", None)]),
    (line("new_type", a=1), [("codex.new_type", '{"a": 1}', None)]),
    ({"type": "response_item", "payload": 5}, [("codex.record", "{}", None)]),
    ({"type": 5}, [("codex.record", '{"type": 5}', None)]),
]


@pytest.mark.parametrize(("record", "expected"), CASES)
def test_what_a_record_becomes(
    take: Callable[..., ImportReport],
    events: Any,
    give: Callable[..., bytes],
    record: dict[str, Any],
    expected: Any,
) -> None:
    report = take(META, record)
    assert (report.format, report.records) == ("codex", 2)
    assert [(str(event.kind), event.text, event.data.get("call_id")) for event in events()[1:]] == expected
    assert [json.loads(text) for text in give().splitlines()] == [META, record]


def test_a_whole_rollout_comes_back(
    take: Callable[..., ImportReport], give: Callable[..., bytes], same_lines: Any
) -> None:
    content = b"".join(
        json.dumps(record).encode() + b"\n" for record in (META, *(record for record, _ in CASES))
    )
    assert take(content).added == len(CASES) + 1
    same_lines(content, give())


def test_an_image_becomes_a_file(
    take: Callable[..., ImportReport], store: sealog.Store, give: Callable[..., bytes]
) -> None:
    text = base64.b64encode(b"\x89PNG 12").decode()
    records = [
        META,
        item(
            "message",
            role="user",
            content=[{"type": "input_image", "image_url": f"data:image/png;base64,{text}"}],
        ),
        item("image_generation_call", id="i", result=text),
    ]
    assert take(*records).attachments == 2
    assert [found.bytes for found in store.open_session("chat").attachments()] == [b"\x89PNG 12"] * 2
    assert [json.loads(line) for line in give().splitlines()] == records
