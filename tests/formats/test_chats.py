"""Chat messages: in OpenAI documents, in SWE-agent trajectories, a line each."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

import sealog

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]
    Give = Callable[..., bytes]

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}

MESSAGES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"role": "system", "content": "rules"}, [("system-message", "rules")]),
    ({"role": "developer", "content": "rules"}, [("system-message", "rules")]),
    ({"role": "user", "content": ""}, [("user-message", "")]),
    (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        [("user-message", "a"), ("user-message", "b")],
    ),
    ({"role": "user", "content": ["a", 5]}, [("user-message", "a"), ("user-message", "5")]),
    ({"role": "user", "content": {"a": 1}}, [("user-message", '{"a": 1}')]),
    (
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        [("tool-call", 'look {"at":1}'), ("tool-call", 'look {"at":1}')],
    ),
    (
        {"role": "assistant", "content": "I look", "tool_calls": [CALL]},
        [("assistant-message", "I look"), ("tool-call", 'look {"at":1}')],
    ),
    ({"role": "assistant", "content": None}, [("assistant-message", "")]),
    ({"role": "assistant", "content": None, "tool_calls": None}, [("assistant-message", "")]),
    ({"role": "assistant", "content": None, "tool_calls": ["x"]}, [("tool-call", "? {}")]),
    (
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
        [("tool-call", "f {}")],
    ),
    (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "g", "input": "x"}}],
        },
        [("tool-call", "g x")],
    ),
    (
        {"role": "assistant", "content": "so", "reasoning_content": "hm"},
        [("NAME.reasoning", "hm"), ("assistant-message", "so")],
    ),
    ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, [("assistant-message", "no")]),
    ({"role": "tool", "tool_call_id": "c1", "content": "seen"}, [("tool-result", "seen")]),
    (
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        [("tool-result", "a\nb")],
    ),
    ({"role": "function", "name": "f", "content": "seen"}, [("tool-result", "seen")]),
    ({"role": "critic", "content": "hm"}, [("NAME.critic", "hm")]),
    ({"role": "a b", "content": "hm"}, [("NAME.record", "hm")]),
]


def shown(events: list[sealog.Event]) -> list[tuple[str, str]]:
    return [(str(event.kind), event.text) for event in events]


def named(expected: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return [(kind.replace("NAME", name), text) for kind, text in expected]


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_in_a_document(take: Take, events: Events, give: Give, message: Any, expected: Any) -> None:
    document = [{"role": "user", "content": "first"}, message]
    assert take(json.dumps(document).encode(), name="chat.json").format == "openai-chat"
    assert shown(events())[1:] == named(expected, "openai-chat")
    assert json.loads(give()) == document


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_in_a_history(take: Take, events: Events, give: Give, message: Any, expected: Any) -> None:
    document = {"history": [{"role": "user", "content": "first"}, message], "info": {}}
    assert take(json.dumps(document).encode(), name="chat.traj").format == "swe-agent"
    assert shown(events())[1:] == [*named(expected, "swe-agent"), ("swe-agent.info", "{}")]
    assert json.loads(give()) == document


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_on_a_line(take: Take, events: Events, give: Give, message: Any, expected: Any) -> None:
    assert take(message).format == "jsonl"
    assert shown(events()) == named(expected, "jsonl")
    assert json.loads(give()) == message


def test_calls_and_their_results_name_each_other(take: Take, events: Events) -> None:
    take(
        {"role": "assistant", "content": "x", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "seen"},
    )
    assert [(event.data.get("call_id"), event.data.get("tool")) for event in events()] == [
        (None, None),
        ("c1", "look"),
        ("c1", "look"),
    ]


@pytest.mark.parametrize(
    "document",
    [
        {"model": "m", "messages": [{"role": "user", "content": "x"}]},
        [{"task": 1, "traj": [{"role": "user", "content": "x"}]}],
        [{"messages": []}, {"messages": [{"role": "user", "content": "x"}]}],
    ],
)
def test_shapes_of_documents(take: Take, document: Any) -> None:
    try:
        assert take(json.dumps(document).encode(), name="chat.json").format == "openai-chat"
    except sealog.SealogError:
        assert take(json.dumps(document).encode(), name="chat.json", format="openai-chat").added


def test_what_is_around_the_messages_is_kept_by_name(take: Take, events: Events) -> None:
    take(
        json.dumps(
            {"model": "m", "tools": [{"name": "a"}], "messages": [{"role": "user", "content": "x"}]}
        ).encode(),
        name="chat.json",
    )
    assert shown(events()) == [
        ("openai-chat.model", '"m"'),
        ("openai-chat.tools", '{"name": "a"}'),
        ("user-message", "x"),
    ]
    assert [event.key for event in events()] == [
        "openai-chat:/model",
        "openai-chat:/tools/0",
        "openai-chat:/messages/0",
    ]


def test_images_and_sounds_become_files(take: Take, store: sealog.Store, give: Give) -> None:
    text = base64.b64encode(b"\x89PNG 12").decode()
    document = [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{text}"}},
                {"type": "input_audio", "input_audio": {"data": text, "format": "wav"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            ],
        }
    ]
    assert take(json.dumps(document).encode(), name="chat.json").attachments == 2
    assert [found.media_type for found in store.open_session("chat").attachments()] == [
        "image/jpeg",
        "audio/wav",
    ]
    assert json.loads(give()) == document


def test_steps_of_a_trajectory_are_no_messages(take: Take, events: Events) -> None:
    document = {
        "trajectory": [{"action": "ls", "observation": "a"}, {"thought": "t"}, 5],
        "history": [{"role": "tool", "content": "a", "tool_call_ids": ["c1"]}],
    }
    take(json.dumps(document).encode(), name="chat.traj")
    assert shown(events()) == [
        ("swe-agent.step", "ls"),
        ("swe-agent.trajectory", '{"thought": "t"}'),
        ("swe-agent.trajectory", "5"),
        ("tool-result", "a"),
    ]
    assert events()[3].data["call_id"] == "c1"


LINES: list[tuple[Any, tuple[str, str]]] = [
    ({"kind": "user-message", "text": "hi", "more": 1}, ("user-message", "hi")),
    ({"kind": "tool-error", "text": "no", "call_id": "c"}, ("tool-error", "no")),
    ({"kind": "myapp.note", "text": "n"}, ("myapp.note", "n")),
    ({"kind": "kennedy-message", "text": "n"}, ("assistant-message", "n")),
    ({"kind": "attachment", "text": "n"}, ("jsonl.attachment", "n")),
    ({"role": "assistant", "text": "hi"}, ("assistant-message", "hi")),
    ({"role": "judge", "text": "hi"}, ("jsonl.judge", "hi")),
    ({"text": "hi"}, ("jsonl.record", "hi")),
    ({"kind": "", "role": "", "content": "hi"}, ("jsonl.record", "hi")),
    ({"kind": "user-message"}, ("user-message", '{"kind": "user-message"}')),
    ({"kind": "user-message", "content": ["a", "b"]}, ("user-message", "a\nb")),
    ({"a": 1}, ("jsonl.record", '{"a": 1}')),
    ([1, 2], ("jsonl.record", "[1, 2]")),
    ("text", ("jsonl.record", '"text"')),
]


@pytest.mark.parametrize(("record", "expected"), LINES)
def test_what_a_line_becomes(
    take: Take, events: Events, give: Give, record: Any, expected: tuple[str, str]
) -> None:
    take(record, format="jsonl")
    assert shown(events()) == [expected]
    assert json.loads(give()) == record


def test_a_session_of_ones_own_goes_out_as_lines_and_in_again(
    store: sealog.Store, give: Give, take: Take, events: Events
) -> None:
    session = store.create_session("own")
    session.append("user-message", "hi\u2028", {"a": [1.0, b"\xff"]}, key="k")
    session.attach(b"\x89PNG 12", file_name="a.png", text="see")
    session.append("myapp.note", "")
    content = give("own")
    lines = [json.loads(line) for line in content.splitlines()]
    at = lines[0].pop("at")
    assert lines[0] == {
        "kind": "user-message",
        "text": "hi\u2028",
        "data": {"a": [1.0, {"base64": "/w=="}]},
        "key": "k",
    }
    assert at == session[0].at
    assert (lines[1]["media_type"], base64.b64decode(lines[1]["data"])) == ("image/png", b"\x89PNG 12")
    assert lines[2].keys() == {"kind", "text", "at"}
    assert take(content).attachments == 1
    assert [str(event.kind) for event in events()] == [
        "user-message",
        "attachment",
        "jsonl.attachment",
        "myapp.note",
    ]
    assert [event.at for event in events()][::3] == [session[0].at, session[2].at]
    assert give() == content


def test_unlike_lines_are_no_json_lines(take: Take) -> None:
    with pytest.raises(sealog.SealogError, match="no format fits"):
        take(b'one\ntwo\n{"a": 1}\n')
    with pytest.raises(sealog.SealogError, match="no format fits"):
        take(json.dumps({"a": [{"b": 1}]}, indent=1).encode())
