"""Events that cannot be stored: refused by every call, before anything is written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog import Event, Role

from .kit import Kit, until_lending

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def session(kit: Kit) -> sealog.Session:
    return kit.store().create_session("s")


UNSTORABLE: list[tuple[dict[str, Any], str]] = [
    ({"kind": ""}, "kind"),
    ({"kind": " \u3000"}, "kind"),
    ({"kind": None}, "kind"),
    ({"kind": 7}, "kind"),
    ({"kind": b"m"}, "kind"),
    ({"kind": "x" * 256}, "kind"),
    ({"kind": "\ud800"}, "kind"),
    ({"kind": "attachment"}, "kind"),
    ({"kind": Role.ATTACHMENT}, "kind"),
    ({"text": None}, "text"),
    ({"text": b"x"}, "text"),
    ({"text": "a\ud800"}, "text"),
    ({"text": "x" * (32 * 1024 * 1024 + 1)}, "text"),
    ({"text": "é" * (16 * 1024 * 1024 + 1)}, "text"),
    ({"key": 7}, "key"),
    ({"key": "k" * 5000}, "key"),
    ({"key": "\ud800"}, "key"),
    ({"data": object()}, "data"),
    ({"data": {"a": [1, {"b": {1, 2}}]}}, "data.a[1].b"),
    ({"data": {1: "a"}}, "data"),
    ({"data": {"a": {None: 1}}}, "data.a"),
    ({"data": math.nan}, "data"),
    ({"data": [math.inf]}, "data[0]"),
    ({"data": 2**64}, "data"),
    ({"data": {"a": -(2**63) - 1}}, "data.a"),
    ({"data": {"a": "\udfff"}}, "data.a"),
    ({"data": {"\udfff": 1}}, "data"),
    ({"data": 1j}, "data"),
    ({"data": bytearray(b"x")}, "data"),
    ({"data": lambda: None}, "data"),
]
NESTED: Any = []
for _ in range(300):
    NESTED = [NESTED]
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
UNSTORABLE += [({"data": NESTED}, "data"), ({"data": ENDLESS}, "data")]


@pytest.mark.parametrize(
    ("bad", "place"), UNSTORABLE, ids=[f"{place}-{n}" for n, (_, place) in enumerate(UNSTORABLE)]
)
def test_an_event_that_cannot_be_stored_is_refused_by_every_call(
    kit: Kit, session: sealog.Session, bad: dict[str, Any], place: str
) -> None:
    session.append("m", "before")
    until_lending(session)
    before = kit.snapshot()
    arguments = {"kind": "m", "text": "x", **bad}
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: session.append(**arguments), place),
        (lambda: session.append(**arguments, timeout=1), place),
        (lambda: session.append_nowait(**arguments), place),
        (lambda: session.append_many([Event("m", "fine"), Event(**arguments)]), f"events[1].{place}"),
    ]
    for call, expected in calls:
        with pytest.raises(sealog.InvalidEventError) as caught:
            call()
        assert caught.value.place.startswith(expected)
        assert caught.value.reason
        assert caught.value.place in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert kit.snapshot() == before
    assert session.append("m", "after") == 1


@pytest.mark.parametrize("bad", ["event", None, {"kind": "m"}, ("m", "x")], ids=repr)
def test_a_batch_of_something_else_is_refused(session: sealog.Session, bad: Any) -> None:
    with pytest.raises(sealog.InvalidEventError) as caught:
        session.append_many([Event("m", "fine"), bad])
    assert caught.value.place == "events[1]"
    assert session.append("m", "x") == 0


@pytest.mark.parametrize("at", [1.5, "now", 2**63, -(2**63) - 1, True], ids=repr)
def test_a_time_that_is_no_64_bit_number_is_refused(session: sealog.Session, at: Any) -> None:
    with pytest.raises(sealog.InvalidEventError) as caught:
        session.append_many([Event("m", "x", at=at)])
    assert caught.value.place == "events[0].at"
    assert session.append("m", "x") == 0


def test_more_events_than_a_batch_takes_are_refused(kit: Kit, session: sealog.Session) -> None:
    with pytest.raises(sealog.LimitExceededError) as caught:
        session.append_many([Event("m", "")] * 65_536)
    assert (caught.value.maximum, caught.value.actual) == (65_535, 65_536)
    assert "several batches" in str(caught.value)
    assert session.append_many([Event("m", "")] * 65_535) == range(65_535)


def test_a_batch_larger_than_a_frame_is_refused_with_a_way_out(session: sealog.Session) -> None:
    with pytest.raises(sealog.LimitExceededError) as caught:
        session.append("m", "x", b"x" * (64 * 1024 * 1024))
    assert caught.value.maximum == 64 * 1024 * 1024
    assert "attach()" in str(caught.value)
    assert session.append("m", "x" * (32 * 1024 * 1024)) == 0
