"""Events: fields, kinds, batches, and their bytes. What `data` may hold is in test_events_data.py."""

from __future__ import annotations

import enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.storage import events as events_module
from sealog.storage.errors import InvalidEventError, LimitExceededError
from sealog.storage.events import (
    BATCH_EVENTS_MAX,
    KEY_BYTES_MAX,
    KIND_BYTES_MAX,
    KIND_CODES,
    TEXT_BYTES_MAX,
    AttachmentData,
    Event,
    Role,
    canonical_content,
    check_not_attachment,
    decode_body,
    decode_keys,
    decode_payload,
    encode_batch,
    encode_event,
    encode_payload,
    is_blank,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PLAIN_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.builds(
    Event,
    kind=st.sampled_from([*Role]) | TEXTS.filter(lambda text: not is_blank(text)),
    text=TEXTS,
    data=PLAIN_DATA,
    at=st.integers(-(2**63), 2**63 - 1),
    key=st.none() | TEXTS,
)


def encoded(kind: Any = "note", text: Any = "t", data: Any = None, at: Any = 0, key: Any = None) -> bytes:
    return encode_event(kind, text, data, at, key)


def refused(place: str, **fields: Any) -> str:
    with pytest.raises(InvalidEventError) as caught:
        encoded(**fields)
    assert caught.value.place == place
    return caught.value.reason


@given(EVENTS)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    body = encoded(event.kind, event.text, event.data, event.at, event.key)
    assert decode_body(body) == event


@given(st.lists(EVENTS, max_size=40))
def test_a_frame_of_events_comes_back_in_order(batch: list[Event]) -> None:
    payload = encode_payload([encoded(e.kind, e.text, e.data, e.at, e.key) for e in batch])
    assert decode_payload(payload) == batch
    assert decode_keys(payload) == [event.key for event in batch]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 255, 256, 65_535])
def test_a_payload_is_the_msgpack_array_of_its_events(count: int) -> None:
    body = encoded("user-message", "x")
    assert encode_payload([body] * count) == msgspec.msgpack.encode([[3, "x", None, 0]] * count)


def test_built_in_kinds_are_small_numbers_on_disk() -> None:
    assert msgspec.msgpack.decode(encoded("assistant-message", "hi", {"a": 1}, 7)) == [4, "hi", {"a": 1}, 7]
    assert msgspec.msgpack.decode(encoded("my.note", "hi", None, 7, "k")) == ["my.note", "hi", None, 7, "k"]


def test_the_codes_of_the_built_in_kinds_are_frozen() -> None:
    assert KIND_CODES == {
        "system-message": 1,
        "system-error": 2,
        "user-message": 3,
        "assistant-message": 4,
        "tool-call": 5,
        "tool-result": 6,
        "tool-error": 7,
        "object": 8,
        "attachment": 9,
    }
    assert set(KIND_CODES) == set(Role)


@pytest.mark.parametrize("role", list(Role))
def test_a_role_and_its_name_are_the_same_kind(role: Role) -> None:
    assert encoded(role) == encoded(role.value)
    kind = decode_body(encoded(role)).kind
    assert kind == role
    assert type(kind) is str


def test_a_built_in_kind_written_as_text_is_the_same_kind() -> None:
    body = msgspec.msgpack.encode(["tool-call", "t", None, 0])
    assert decode_body(body).kind == Role.TOOL_CALL


def test_a_kind_code_of_the_future_keeps_its_number() -> None:
    """An unknown kind counts as an event and is handed on."""
    body = msgspec.msgpack.encode([200, "t", {"x": 1}, 5])
    assert decode_body(body) == Event("sealog.kind-200", "t", {"x": 1}, 5)


def test_fields_of_a_later_minor_version_are_ignored() -> None:
    payload = msgspec.msgpack.encode([[3, "t", None, 0, "k", {"more": True}, 9], [3, "u", None, 1]])
    assert decode_payload(payload) == [
        Event("user-message", "t", None, 0, "k"),
        Event("user-message", "u", None, 1),
    ]
    assert decode_keys(payload) == ["k", None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc0",
        b"\x90",
        b"\x93\x03\xa1x\xc0",
        b"\x94\x03\x01\xc0\x00",
        b"\x94\xc0\xa1x\xc0\x00",
        b"\x94\x03\xa1\xff\xc0\x00",
    ],
    ids=["empty", "nil", "no-fields", "no-time", "text-is-int", "kind-is-nil", "text-not-utf-8"],
)
def test_bytes_that_are_no_event_do_not_decode(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_payload(b"\x91" + body)


@pytest.mark.parametrize("kind", ["", " ", "\t\n", "\u3000\u2028", "\x85"])
def test_a_blank_kind_is_refused(kind: str) -> None:
    assert "blank" in refused("kind", kind=kind)


@pytest.mark.parametrize("text", ["\x1c", "\u200b", "\ufeff", " x "])
def test_only_unicode_white_space_is_blank(text: str) -> None:
    assert not is_blank(text)
    assert decode_body(encoded(kind=text)).kind == text


@pytest.mark.parametrize("value", [None, 3, b"note", ["note"]])
def test_kind_must_be_text(value: object) -> None:
    assert type(value).__name__ in refused("kind", kind=value)


@pytest.mark.parametrize("value", [None, 3, b"t", ["t"]])
@pytest.mark.parametrize("kind", ["note", Role.OBJECT])
def test_text_must_be_text(kind: str, value: object) -> None:
    assert type(value).__name__ in refused("text", kind=kind, text=value)


@pytest.mark.parametrize("value", [3, b"k", ("k",)])
def test_a_key_must_be_text(value: object) -> None:
    assert type(value).__name__ in refused("key", key=value)


def test_an_empty_key_is_a_key() -> None:
    assert decode_body(encoded(key="")).key == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "a\ud800"), ("text", "a\udfff"), ("key", "a\udc80")],
)
@pytest.mark.parametrize("kind", ["note", Role.OBJECT])
def test_a_lone_surrogate_is_refused_with_its_place(kind: str, field: str, value: str) -> None:
    reason = refused(field, **{"kind": kind, field: value})
    assert "lone surrogate" in reason
    assert "character 1" in reason


@pytest.mark.parametrize("at", [-(2**63), -1, 0, 2**63 - 1])
def test_times_are_64_bit(at: int) -> None:
    assert decode_body(encoded(at=at)).at == at


@pytest.mark.parametrize("at", [-(2**63) - 1, 2**63, 1.5, True, "now", None])
def test_other_times_are_refused(at: object) -> None:
    assert "64-bit" in refused("at", at=at)


@pytest.mark.parametrize(("field", "limit"), [("kind", KIND_BYTES_MAX), ("key", KEY_BYTES_MAX)])
def test_names_are_limited_in_bytes_not_characters(field: str, limit: int) -> None:
    longest = "é" * (limit // 2) + "x" * (limit % 2)
    assert getattr(decode_body(encoded(**{field: longest})), field) == longest
    assert f"{limit} bytes" in refused(field, **{field: longest + "x"})


def test_text_up_to_the_limit_is_stored() -> None:
    """Just under, at and over the point from where the bytes are counted and not only the characters."""
    quarter = "€" * (TEXT_BYTES_MAX // 4 + 1)
    assert len(encoded(text=quarter)) > len(quarter) * 3
    longest = "x" * TEXT_BYTES_MAX
    assert decode_body(encoded("user-message", longest)).text == longest


@pytest.mark.parametrize("kind", ["note", "user-message"])
def test_text_over_the_limit_is_refused(kind: str) -> None:
    assert "attach()" in refused("text", kind=kind, text="x" * (TEXT_BYTES_MAX + 1))
    assert "33,554,432 bytes" in refused("text", kind=kind, text="€" * (TEXT_BYTES_MAX // 3 + 1))


def test_subclasses_of_str_are_stored_as_plain_text() -> None:
    class Shouting(str):
        __slots__ = ()

        def __str__(self) -> str:
            return self.upper() + "!"

    event = decode_body(encoded(Shouting("note"), Shouting("t"), None, 0, Shouting("k")))
    assert event == Event("note", "t", None, 0, "k")


def test_an_enum_member_that_is_text_is_stored_as_its_value() -> None:
    class Colour(str, enum.Enum):  # noqa: UP042 — older code has it
        RED = "red"

    event = decode_body(encoded(Colour.RED, Colour.RED, None, 0, Colour.RED))
    assert (event.kind, event.text, event.key) == ("red", "red", "red")


class TestBatch:
    def test_events_without_a_time_get_the_time_of_the_call(self) -> None:
        bodies, keys = encode_batch([Event("a", "x"), Event("b", "y", at=5, key="k")], now_ns=9)
        assert [decode_body(body).at for body in bodies] == [9, 5]
        assert keys == [None, "k"]

    def test_an_empty_batch_is_no_bodies(self) -> None:
        assert encode_batch([], 0) == ([], [])

    def test_time_zero_is_a_time(self) -> None:
        assert decode_body(encode_batch([Event("a", "x", at=0)], now_ns=9)[0][0]).at == 0

    @pytest.mark.parametrize(
        ("event", "place"),
        [
            ("note", "events[1]"),
            (Event("", "x"), "events[1].kind"),
            (Event("attachment", "x"), "events[1].kind"),
            (Event("a", "x", {"b": [0, {1}]}), "events[1].data.b[1]"),
            (Event("a", "x", key="\ud800"), "events[1].key"),
        ],
    )
    def test_an_error_names_the_event_and_the_place_in_it(self, event: Any, place: str) -> None:
        with pytest.raises(InvalidEventError) as caught:
            encode_batch([Event("a", "fine"), event, Event("a", "fine")], 0)
        assert caught.value.place == place

    def test_a_batch_has_at_most_65535_events(self) -> None:
        event = Event("a", "")
        assert len(encode_batch([event] * BATCH_EVENTS_MAX, 0)[0]) == BATCH_EVENTS_MAX
        with pytest.raises(LimitExceededError, match="events of one batch: 65,536 is over") as caught:
            encode_batch([event] * (BATCH_EVENTS_MAX + 1), 0)
        assert caught.value.maximum == BATCH_EVENTS_MAX


@pytest.mark.parametrize("kind", ["attachment", Role.ATTACHMENT])
def test_the_attachment_kind_is_reserved(kind: str) -> None:
    with pytest.raises(InvalidEventError, match=r"attach\(\) only"):
        check_not_attachment(kind)
    check_not_attachment("attachments")


class TestCanonicalContent:
    """What two appends with the same key must share."""

    def test_the_order_of_names_and_the_time_do_not_matter(self) -> None:
        one = Event("a", "t", {"x": 1, "y": {"b": 2, "a": 1}}, at=1, key="k")
        two = Event("a", "t", {"y": {"a": 1, "b": 2}, "x": 1}, at=2, key="k")
        assert canonical_content(one) == canonical_content(two)

    @pytest.mark.parametrize(
        "other",
        [
            Event("b", "t", [1]),
            Event("a", "T", [1]),
            Event("a", "t", [2]),
            Event("a", "t", [1.0]),
            Event("a", "t", [True]),
            Event("a", "t"),
        ],
    )
    def test_kind_text_and_data_matter(self, other: Event) -> None:
        assert canonical_content(Event("a", "t", [1])) != canonical_content(other)

    @given(EVENTS)
    def test_it_is_the_same_before_and_after_storing(self, event: Event) -> None:
        stored = decode_body(encoded(event.kind, event.text, event.data, event.at, event.key))
        assert canonical_content(stored) == canonical_content(event)


class TestEvent:
    def test_it_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            Event("a", "t").text = "u"  # type: ignore[misc]

    def test_data_decodes_to_a_type(self) -> None:
        data = {"file_name": "a.txt", "media_type": "text/plain", "size_bytes": 1, "sha256": "00"}
        assert Event("a", "t", data).decode(AttachmentData) == AttachmentData("a.txt", "text/plain", 1, "00")

    def test_data_that_does_not_fit_the_type_is_an_error(self) -> None:
        with pytest.raises(msgspec.ValidationError):
            Event("a", "t", {"file_name": 3}).decode(AttachmentData)


def test_no_unchecked_text_can_be_over_the_limit() -> None:
    """Text below this many code points is not measured: each is at most four bytes."""
    assert events_module._TEXT_UNCHECKED * len("\U0010ffff".encode()) <= TEXT_BYTES_MAX
