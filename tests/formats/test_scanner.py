"""Cutting a document without reading it as a whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealog.formats import scanner as scanner_module
from sealog.formats.scanner import Scanner, StructureError, sketch

TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"', "\\", '\\"', "}{][,:", "\\\\\\"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


class Slowly(io.BytesIO):
    """A file that gives a byte or two at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 1, 2) if size and size > 0 else size)


def take_apart(scanner: Scanner) -> Any:
    first = scanner.peek()
    if first == b"[":
        return [take_apart(scanner) for _ in scanner.elements()]
    if first == b"{":
        return {json.loads(key): take_apart(scanner) for key in scanner.members()}
    return json.loads(scanner.value())


@settings(deadline=None)
@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_a_document_comes_apart_as_json_does(value: Any, indent: int | None, slowly: bool) -> None:
    raw = json.dumps(value, indent=indent).encode()
    scanner = Scanner((Slowly if slowly else io.BytesIO)(raw))
    assert json.dumps(take_apart(scanner)) == json.dumps(value)
    scanner.finish()
    assert scanner.offset == len(raw)


@settings(deadline=None)
@given(st.lists(JSON, min_size=1, max_size=5), st.sampled_from(["", " \n"]))
def test_values_are_cut_out_as_they_stand(values: list[Any], space: str) -> None:
    texts = [json.dumps(value, indent=1) for value in values]
    raw = f"{space}[{space}{f'{space},{space}'.join(texts)}{space}]{space}".encode()
    scanner = Scanner(Slowly(raw))
    assert [scanner.value().decode() for _ in scanner.elements()] == texts
    scanner.finish()
    skipping = Scanner(Slowly(raw))
    for _ in skipping.elements():
        skipping.skip()
    skipping.finish()


@settings(deadline=None)
@given(JSON)
def test_every_cut_is_noticed(value: Any) -> None:
    raw = json.dumps([value]).encode()
    for end in range(len(raw)):
        scanner = Scanner(io.BytesIO(raw[:end]))
        with pytest.raises((StructureError, ValueError)):  # a number or a word may be what is cut
            take_apart(scanner)


@pytest.mark.parametrize(
    "raw",
    [
        b"[1 2]",
        b"[1,]",
        b"[,1]",
        b'{"a" 1}',
        b'{"a":1,}',
        b"{1:2}",
        b'{"a"}',
        b"[1]]",
        b"[1] x",
        b"{}{}",
        b"[}",
    ],
)
def test_wrong_punctuation_is_noticed(raw: bytes) -> None:
    scanner = Scanner(io.BytesIO(raw))

    def read() -> None:
        take_apart(scanner)
        scanner.finish()

    with pytest.raises(StructureError):
        read()


def test_lines_are_counted_across_reads() -> None:
    raw = b'[\n"a\\n",\n\n  {"b":\n1}\n]\n'
    scanner = Scanner(Slowly(raw))
    seen: list[int] = []
    for _ in scanner.elements():
        scanner.peek()
        seen.append(scanner.line)
        scanner.skip()
    assert seen == [2, 4]
    with pytest.raises(StructureError) as caught:
        scanner.value()
    assert caught.value.line == 7


def test_a_byte_order_mark_is_passed() -> None:
    scanner = Scanner(io.BytesIO(b"\xef\xbb\xbf[1]"))
    assert [scanner.value() for _ in scanner.elements()] == [b"1"]


def test_memory_is_that_of_the_largest_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner_module, "_CHUNK_BYTES", 64)
    reads: list[int] = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            reads.append(size or 0)
            return super().read(size)

    raw = json.dumps([["x" * 40] * 20] * 50).encode()
    scanner = Scanner(Watched(raw))
    for _ in scanner.elements():
        scanner.skip()
    assert max(reads) == 64


def test_a_sketch_shows_the_shape_and_passes_the_rest() -> None:
    document = {
        "a": [{"role": "user", "n": [[[[1]]]]}, 2, {"z": "]"}],
        "b": "x" * 5000,
        "c": {},
        "d": 1.5,
        "e": [],
    }
    scanner = Scanner(io.BytesIO(json.dumps(document).encode()))
    found = sketch(scanner)
    assert found == {"a": [{"role": "user", "n": [[]]}], "b": None, "c": {}, "d": 1.5, "e": []}
    scanner.finish()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b'{"a": [{"role": "us', {"a": [{}]}),
        (b'{"a": [{"role": "user"}, {', {"a": [{"role": "user"}]}),
        (b'[{"role": "user"}', [{"role": "user"}]),
        (b'{"a": 1, "b', {"a": 1}),
        (b'{"a": foo, "\\u12": 3}', {"a": None, "": 3}),
    ],
)
def test_a_sketch_of_half_a_document_shows_what_is_there(raw: bytes, found: Any) -> None:
    assert sketch(Scanner(io.BytesIO(raw))) == found
