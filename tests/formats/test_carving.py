"""Records as events, and back."""

from __future__ import annotations

import base64
import json
import string
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sealog
from sealog.formats import carving
from sealog.formats.carving import make_entry
from sealog.formats.embedded import encode_base64
from sealog.formats.records import Part
from sealog.formats.restoring import restore_value
from sealog.storage.events import encode_event

if TYPE_CHECKING:
    from sealog.formats.records import Entry

IMAGE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"\x89PNG 1234").decode()}
TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
LEAF = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.just(IMAGE)
)
JSON = st.recursive(
    LEAF,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(string.ascii_lowercase) | TEXT, inner, max_size=4)
    ),
    max_leaves=20,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in below for found in places(inner, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def restored(entry: Entry) -> Any:
    contents = {file.key.rpartition(":")[2]: file.source for file in entry.files}
    pieces = [(event.text, event.data) for event in entry.events]
    return restore_value(pieces, lambda reference: encode_base64(contents[reference]))


def enter(value: Any, *parts: Part, raw: bytes | None = None, number: Any = 7) -> Entry:
    return make_entry("test", number, json.dumps(value).encode() if raw is None else raw, lambda _: parts)


@settings(deadline=None)
@given(st.data())
def test_whatever_the_parts_are_the_record_comes_back(data: st.DataObject) -> None:
    value = data.draw(JSON)
    paths = places(value)
    parts = [Part("root", "")]
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=4)):
        leaf = at(value, path)
        parts.append(
            Part(
                "part",
                leaf if isinstance(leaf, str) else "?",
                path,
                path if data.draw(st.booleans()) else None,
            )
        )
    entry = enter(value, *parts)
    assert len(entry.events) == len(parts)
    for event in entry.events:
        encode_event(event.kind, event.text, event.data, 0, event.key)
    if "raw" in entry.events[0].data:
        assert json.dumps(json.loads(entry.events[0].data["raw"])) == json.dumps(value)
    else:
        assert json.dumps(restored(entry)) == json.dumps(value)


def test_pieces_and_texts_are_kept_once() -> None:
    value = {
        "id": 1,
        "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second", "n": 2}],
    }
    entry = enter(
        value,
        Part("one", "first", ("content", 0), ("content", 0, "text")),
        Part("two", "second", ("content", 1), ("content", 1, "text"), call_id="c", tool="t"),
    )
    assert entry.events == [
        sealog.Event(
            "one",
            "first",
            {
                "format": "test",
                "record": 7,
                "digest": entry.digest,
                "parts": 2,
                "text_at": ["content", 0, "text"],
                "json": {"id": 1, "content": [{"type": "text", "text": ""}, None]},
            },
            key="test:7",
        ),
        sealog.Event(
            "two",
            "second",
            {
                "format": "test",
                "record": 7,
                "part": 1,
                "text_at": ["text"],
                "at": ["content", 1],
                "json": {"type": "text", "text": "", "n": 2},
                "call_id": "c",
                "tool": "t",
            },
            key="test:7:1",
        ),
    ]
    assert restored(entry) == value


def test_a_file_leaves_its_base64_behind() -> None:
    entry = enter({"a": IMAGE, "b": [IMAGE, f"data:image/png;base64,{IMAGE['data']}"]}, Part("one", ""))
    assert [(file.source, file.media_type) for file in entry.files] == [(b"\x89PNG 1234", "image/png")]
    assert entry.files[0].key.startswith("test:7:file:")
    assert entry.files[0].file_name.endswith(".png")
    data = entry.events[0].data
    assert IMAGE["data"] not in json.dumps(data)
    assert data["json"]["b"][1] == "data:image/png;base64,"
    assert [path for path, _ in data["files"]] == [["a", "data"], ["b", 0, "data"], ["b", 1]]


def test_base64_that_would_not_come_back_stays_and_is_attached_too() -> None:
    wrapped = IMAGE | {"data": IMAGE["data"][:8] + "\n" + IMAGE["data"][8:]}
    entry = enter({"a": wrapped}, Part("one", ""))
    assert [file.source for file in entry.files] == [b"\x89PNG 1234"]
    assert entry.events[0].data["json"] == {"a": wrapped}
    assert restored(entry) == {"a": wrapped}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"n": 1e400}',
        b'{"a": 1, "a": 2}',
        b'{"t": "\\ud800"}',
        b'{"n": NaN}',
        b"[" * 200 + b"]" * 200,
        b'{"n":-0}',
    ],
)
def test_what_json_cannot_give_back_is_kept_as_text(raw: bytes) -> None:
    entry = enter(
        None, Part("one", "half \ud800"), Part("two", "x", ("n",), call_id="\udfff"), raw=raw + b" \r"
    )
    assert [event.kind for event in entry.events] == ["one", "two"]
    assert entry.events[0].data["raw"] == raw.decode() + " \r"
    assert entry.events[0].text == "half \ufffd"
    assert entry.events[1].data == {"format": "test", "record": 7, "part": 1, "call_id": "\ufffd"}
    for event in entry.events:
        encode_event(event.kind, event.text, event.data, 0, event.key)


def test_a_file_in_a_record_that_is_kept_as_text_is_attached_too() -> None:
    raw = b'{"n": 1e400, "a": ' + json.dumps(IMAGE).encode() + b"}"
    entry = enter(None, Part("one", ""), raw=raw)
    assert [file.source for file in entry.files] == [b"\x89PNG 1234"]
    assert entry.events[0].data["raw"] == raw.decode()
    assert entry.events[0].data["files"] == [[None, entry.files[0].key.rpartition(":")[2]]]


@pytest.mark.parametrize("raw", [b'{"a": "\xff"}', b'{"a', b"\0\0\0", b"hello"])
def test_what_is_no_json_is_kept_and_reported(raw: bytes) -> None:
    entry = enter(None, Part("never", ""), raw=raw)
    assert [event.kind for event in entry.events] == ["test.raw"]
    kept = entry.events[0].data["raw"]
    assert (kept if isinstance(kept, bytes) else kept.encode()) == raw
    assert entry.problem is not None
    assert not entry.provisional
    for event in entry.events:
        encode_event(event.kind, event.text, event.data, 0, event.key)


@pytest.mark.parametrize("raw", [b'{"a": 1', b"12", b"1.5", b'"ab', b"tru"])
def test_an_unfinished_record_counts_until_it_is_finished(raw: bytes) -> None:
    entry = make_entry("test", 7, raw, lambda _: [Part("one", "")], unfinished=True)
    assert entry.provisional
    assert entry.events[0].kind == "test.incomplete"
    assert entry.events[0].key == f"test:7:incomplete:{entry.digest[:16]}"
    assert entry.events[0].data["provisional"] is True
    assert entry.events[0].data["raw"] == raw.decode()


@pytest.mark.parametrize("raw", [b'{"a": 1}', b"[1]", b'"ab"', b"true", b"null"])
def test_a_complete_record_without_a_line_end_is_complete(raw: bytes) -> None:
    assert not make_entry("test", 7, raw, lambda _: [Part("one", "")], unfinished=True).provisional


def test_a_large_record_is_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carving, "RECORD_BYTES_MAX", 10_000)
    value = {"text": "x" * 20_000}
    entry = enter(value, Part("one", value["text"], text_at=("text",)))
    assert [file.source for file in entry.files] == [json.dumps(value).encode()]
    assert len(entry.events[0].text) < 5000
    assert entry.events[0].data["raw_file"] == entry.files[0].key.rpartition(":")[2]
    assert entry.size_bytes == 10_000
    small = enter({"a": IMAGE | {"data": base64.b64encode(bytes(20_000)).decode()}}, Part("one", ""))
    assert "json" in small.events[0].data


def test_a_large_line_that_is_no_json_is_kept_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carving, "RECORD_BYTES_MAX", 10_000)
    entry = enter(None, raw=b"\xff" * 20_000)
    assert [file.source for file in entry.files] == [b"\xff" * 20_000]
    assert len(entry.events[0].text) < 5000


def test_more_parts_than_the_limit_stay_in_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carving, "PARTS_MAX", 3)
    value = {"content": [{"text": str(n)} for n in range(10)]}
    entry = enter(value, *(Part("part", str(n), ("content", n), ("content", n, "text")) for n in range(10)))
    assert len(entry.events) == 3
    assert restored(entry) == value


def test_parts_that_do_not_fit_the_record_lose_nothing() -> None:
    value = {"a": {"b": "text"}}
    for parts in (
        [Part("one", ""), Part("two", "", ("x", "y"))],
        [Part("one", ""), Part("two", "", ("a",)), Part("three", "", ("a", "b"))],
        [Part("one", ""), Part("two", "", ("a",)), Part("three", "", ("a",))],
        [Part("one", "text", text_at=("a", "b", "c"))],
    ):
        entry = enter(value, *parts)
        data = entry.events[0].data
        assert (json.loads(data["raw"]) if "raw" in data else restored(entry)) == value


def test_equal_json_has_one_digest() -> None:
    part = Part("one", "")
    first = enter(None, part, raw=b'{"a": 1, "b": "\xc3\xa9"}')
    assert enter(None, part, raw=b'{"b":"\\u00e9","a":1}\r').digest == first.digest
    assert enter(None, part, raw=b'{"b":"\\u00e9","a":1.0}').digest != first.digest
    assert enter(None, part, raw=b'{"a": 1e400} \r').digest == enter(None, part, raw=b'{"a": 1e400}').digest


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-02-10T21:11:56.906Z", 1770757916906000000),
        ("2026-02-10T22:11:56.906001+01:00", 1770757916906001000),
        ("2026-02-10T21:11:56", 1770757916000000000),
        (1770757916, 1770757916000000000),
        (1770757916.5, 1770757916500000000),
        (1770757916906, 1770757916906000000),
        (1770757916906001, 1770757916906001000),
        (1770757916906001002, 1770757916906001002),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("yesterday", None),
        (0, None),
        (-5, None),
        (2**64 - 1, None),
        (True, None),
        ([], None),
    ],
)
def test_the_time_of_a_record_is_that_of_its_events(time: Any, expected: int | None) -> None:
    entry = enter({"timestamp": time}, Part("one", ""), Part("two", "", ("timestamp",)))
    assert [event.at for event in entry.events] == [expected, expected]


def test_a_record_of_a_document_is_named_by_its_path() -> None:
    entry = enter({"a": IMAGE}, Part("one", ""), number=("hi/story~", 3))
    assert entry.events[0].key == "test:/hi~1story~0/3"
    assert entry.events[0].data["record"] == ["hi/story~", 3]
    assert "/" not in entry.files[0].file_name
