"""Transcripts: messages for a provider, calls never apart from their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealog
from sealog.projections import Transcript, TranscriptMessage
from sealog.projections.transcript import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator

Event = sealog.Event


@pytest.fixture
def session(store: sealog.Store) -> sealog.Session:
    return store.create_session("s")


def call(call_id: Any = None, text: str = "call") -> Event:
    return Event("tool-call", text, None if call_id is None else {"call_id": call_id, "name": "ls"})


def answer(call_id: Any = None, text: str = "result", kind: str = "tool-result") -> Event:
    return Event(kind, text, None if call_id is None else {"call_id": call_id})


def user(text: str = "hi") -> Event:
    return Event("user-message", text)


def brief(messages: list[TranscriptMessage]) -> list[str]:
    return [
        f"{message.role} {'!' if message.is_interrupted else message.text}"
        + ("" if message.call_id is None else f" {message.call_id}")
        for message in messages
    ]


def projected(session: sealog.Session, **options: Any) -> list[str]:
    return brief(session.project(Transcript(**options)))


def test_messages_have_roles_positions_and_data(session: sealog.Session):
    session.append_many(
        [
            Event("system-message", "be brief"),
            Event("myapp.note", "not for the model"),
            user(),
            Event("assistant-message", "let me see", {"usage": 5}),
            call("c1"),
            answer("c1", "no such file", "tool-error"),
            Event("system-error", "left out"),
            Event("object", "left out"),
        ]
    )
    session.attach(b"png", file_name="a.png", media_type="image/png")
    session.attach(b"png", file_name="b.png", media_type="image/png", text="look at this")
    messages = session.project(Transcript())
    assert [message.position for message in messages] == [0, 2, 3, 4, 5, 8, 9]
    assert brief(messages) == [
        "system be brief",
        "user hi",
        "assistant let me see",
        "assistant call c1",
        "tool no such file c1",
        "user [attachment a.png, image/png]",
        "user look at this",
    ]
    assert messages[2].data == {"usage": 5}
    assert messages[5].data["file_name"] == "a.png"
    assert [message.is_error for message in messages] == [False] * 4 + [True, False, False]


def test_what_is_handed_out_is_the_callers_own(session: sealog.Session):
    session.append("tool-call", "x", {"call_id": "c", "arguments": {"a": [1]}})
    for _ in range(2):
        messages = session.project(Transcript())
        assert messages[0].data["arguments"] == {"a": [1]}
        messages[0].data.clear()
        messages.clear()


def test_a_dangling_call_is_closed_and_the_log_is_not_changed(session: sealog.Session):
    session.append_many([user(), call("c1"), call("c2"), answer("c2"), user("go on")])
    assert projected(session) == [
        "user hi",
        "assistant call c1",
        "assistant call c2",
        "tool result c2",
        "user go on",
    ]
    for _ in range(2):
        closed = session.project(Transcript(close_dangling=True))
        assert brief(closed) == [
            "user hi",
            "assistant call c1",
            "assistant call c2",
            "tool ! c1",
            "tool result c2",
            "user go on",
        ]
        made_up = closed[3]
        assert (made_up.text, made_up.is_error, made_up.position) == (INTERRUPTED, True, 1)
    assert len(session) == 5


def test_the_real_result_takes_the_place_of_the_one_made_up(session: sealog.Session):
    session.append_many([call("c1")])
    assert projected(session, close_dangling=True) == ["assistant call c1", "tool ! c1"]
    session.append_many([user("still there?"), answer("c1", "late")])
    assert projected(session, close_dangling=True) == [
        "assistant call c1",
        "tool late c1",
        "user still there?",
    ]
    assert projected(session)[-1] == "tool late c1"


def test_results_without_a_call_and_second_results_are_left_out_when_closed(session: sealog.Session):
    session.append_many([answer("lost"), call("c1"), answer("c1"), answer("c1", "again"), answer()])
    assert projected(session, close_dangling=True) == ["assistant call c1", "tool result c1"]
    assert len(projected(session)) == 5


def test_calls_one_after_another_stay_so(session: sealog.Session):
    session.append_many([call("a"), answer("a"), call("b"), answer("b"), call("c"), call("d"), answer("d")])
    assert projected(session, close_dangling=True) == [
        "assistant call a",
        "tool result a",
        "assistant call b",
        "tool result b",
        "assistant call c",
        "assistant call d",
        "tool ! c",
        "tool result d",
    ]


def test_without_ids_the_oldest_open_call_is_answered(session: sealog.Session):
    session.append_many([call(), call(), answer(text="first"), answer(text="second"), call()])
    assert projected(session, close_dangling=True) == [
        "assistant call call-0",
        "assistant call call-1",
        "tool first call-0",
        "tool second call-1",
        "assistant call call-4",
        "tool ! call-4",
    ]


def test_an_id_that_is_used_again_belongs_to_the_newest_call(session: sealog.Session):
    session.append_many([call("c", "one"), user(), call("c", "two"), answer("c")])
    assert projected(session, close_dangling=True) == [
        "assistant one c",
        "tool ! c",
        "user hi",
        "assistant two c",
        "tool result c",
    ]


@pytest.mark.parametrize("name", ["call_id", "tool_call_id", "tool_use_id", "toolCallId", "id"])
def test_other_names_of_the_id_are_known(session: sealog.Session, name: str):
    session.append_many([Event("tool-call", "x", {name: 7}), answer("7")])
    assert projected(session, close_dangling=True) == ["assistant x 7", "tool result 7"]


def test_a_call_id_goes_before_an_id_of_the_message(session: sealog.Session):
    session.append_many(
        [
            Event("tool-call", "x", {"id": "fc_1", "call_id": "c1"}),
            Event("tool-result", "y", {"id": "msg_2", "tool_call_id": "c1"}),
        ]
    )
    assert projected(session, close_dangling=True) == ["assistant x c1", "tool y c1"]


def test_calls_inside_an_assistant_message_are_calls(session: sealog.Session):
    calls = {"tool_calls": [{"id": "a"}, {"id": "b"}, {"no": "id"}, "odd"]}
    session.append_many([Event("assistant-message", "both", calls), answer("b"), user()])
    closed = ["assistant both", "tool ! a", "tool result b", "user hi"]
    assert projected(session, close_dangling=True) == closed
    assert projected(session, close_dangling=True, limit=3) == ["user hi"]
    assert projected(session, limit=2) == ["user hi"]


@pytest.mark.parametrize("data", [[1], "x", 5, {"call_id": None}, {"call_id": ["c"]}, {"tool_calls": 5}])
def test_odd_data_is_a_call_without_an_id(session: sealog.Session, data: Any):
    session.append_many(
        [
            Event("assistant-message", "m", data),
            Event("tool-call", "x", data),
            Event("tool-result", "y", data),
        ]
    )
    assert projected(session, close_dangling=True) == ["assistant m", "assistant x call-1", "tool y call-1"]


def test_a_limit_never_cuts_a_call_from_its_result(session: sealog.Session):
    session.append_many([user(), call("a"), call("b"), answer("a"), answer("b"), user("bye")])
    assert projected(session, limit=5)[0] == "assistant call a"
    assert projected(session, limit=4) == ["assistant call b", "tool result b", "user bye"]
    assert projected(session, limit=3) == projected(session, limit=1) == ["user bye"]
    assert projected(session, limit=100) == projected(session)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(limit: int):
    with pytest.raises(ValueError, match="a transcript of"):
        Transcript(limit=limit)


def test_projections_with_the_same_parameters_are_equal():
    assert Transcript(limit=5) == Transcript(limit=5)
    assert len({Transcript(), Transcript(), Transcript(limit=5), Transcript(close_dangling=True)}) == 3
    assert Transcript() != 5


def test_unanswered_calls_are_not_remembered_for_ever(session: sealog.Session):
    session.append_many([call(str(number)) for number in range(1500)])
    session.append_many([answer("0"), answer("1400")])
    raw = projected(session)
    assert raw[-2:] == ["tool result 0", "tool result 1400"]
    closed = projected(session, close_dangling=True)
    assert "tool ! 0" in closed
    assert "tool result 1400" in closed


EVENTS = st.lists(
    st.one_of(
        st.builds(call, st.sampled_from(["a", "b", "c", None])),
        st.builds(answer, st.sampled_from(["a", "b", "c", None])),
        st.builds(user),
        st.just(Event("myapp.note", "")),
        st.just(Event("assistant-message", "m", {"tool_calls": [{"id": "a"}, {"id": "d"}]})),
        st.just(Event("assistant-message", "m")),
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sealog.Store]:
    with sealog.open(tmp_path_factory.mktemp("store")) as store:
        yield store


def check_pairs(messages: list[TranscriptMessage]) -> None:
    """Check that calls are followed by their results and by nothing else, and results by calls."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.call_id in waiting
            waiting.remove(message.call_id or "")
            continue
        calls = [one["id"] for one in (message.data or {}).get("tool_calls", [])]
        if message.kind == "tool-call":
            calls = [message.call_id]
        if not calls:
            assert not waiting
        waiting += calls
    assert not waiting


@settings(deadline=None, max_examples=150)
@given(events=EVENTS, limit=st.none() | st.integers(1, 12), split=st.integers(0, 30))
def test_closed_transcripts_are_valid_however_they_came_about(
    module_store: sealog.Store, events: list[Event], limit: int | None, split: int
):
    session = module_store.create_session(f"s{len(module_store.session_ids())}")
    incremental = Transcript(close_dangling=True, limit=limit)
    raw = Transcript(limit=limit)
    for part in (events[:split], events[split:]):
        session.append_many(part)
        closed, kept = session.project(incremental), session.project(raw)
        if limit is None:
            check_pairs(closed)
        else:
            assert len(closed) <= limit
            assert len(kept) <= limit
            inside = [message for message in kept if message.role == "tool"]
            assert all(
                any(
                    other.position < message.position
                    and (other.call_id == message.call_id or "tool_calls" in (other.data or {}))
                    for other in kept
                )
                for message in inside
            )
    state = incremental.initial()
    for event in session.events():
        state = incremental.apply(state, event)
    assert incremental.view(incremental.load(incremental.save(state))) == session.project(incremental)
