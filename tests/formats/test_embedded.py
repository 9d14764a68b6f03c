"""Files inside JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sealog.formats.embedded import find_embedded, may_embed

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(255))
TEXT = base64.b64encode(PNG).decode()


def found(value: Any) -> list[tuple[Any, ...]]:
    return [
        (item.path, item.prefix, item.media_type, item.content, item.exact) for item in find_embedded(value)
    ]


@pytest.mark.parametrize(
    ("value", "path", "prefix", "media_type"),
    [
        ({"type": "base64", "media_type": "image/png", "data": TEXT}, ("data",), "", "image/png"),
        ({"type": "image", "mimeType": "image/webp", "data": TEXT}, ("data",), "", "image/webp"),
        ({"file": {"base64": TEXT, "type": "image/gif"}}, ("file", "base64"), "", "image/gif"),
        ({"base64": TEXT}, ("base64",), "", "image/png"),
        ({"base64": TEXT, "type": "picture"}, ("base64",), "", "image/png"),
        ({"base64": TEXT, "media_type": "image/gif", "type": "picture"}, ("base64",), "", "image/gif"),
        ({"input_audio": {"data": TEXT, "format": "wav"}}, ("input_audio", "data"), "", "audio/wav"),
        ({"type": "image_generation_call", "result": TEXT}, ("result",), "", "image/png"),
        (
            [{"image_url": {"url": f"data:image/png;base64,{TEXT}"}}],
            (0, "image_url", "url"),
            "data:image/png;base64,",
            "image/png",
        ),
        (f"data:image/png;a=b;base64,{TEXT}", (), "data:image/png;a=b;base64,", "image/png"),
        ({"type": "base64", "media_type": "text/plain", "data": TEXT}, ("data",), "", "text/plain"),
        (
            {"type": "base64", "media_type": "<script>", "data": TEXT},
            ("data",),
            "",
            "application/octet-stream",
        ),
    ],
)
def test_base64_is_found_where_programs_put_it(value: Any, path: Any, prefix: str, media_type: str) -> None:
    assert found(value) == [(path, prefix, media_type, PNG, True)]


@pytest.mark.parametrize(
    "value",
    [
        {"data": TEXT},
        {"data": "plain words", "media_type": "text/plain"},
        {"data": "test", "media_type": "text/plain"},
        {"data": 5, "media_type": "image/png"},
        {"data": "", "media_type": "image/png"},
        {"data": "====", "media_type": "image/png"},
        {"data": TEXT, "media_type": 5},
        {"data": "não é base64!", "media_type": "image/png", "type": "base64"},
        {"url": "data:image/png;base64,%%%%"},
        {"url": "data:text/plain,hello"},
        {"text": f"see data:image/png;base64,{TEXT}"},
        {"result": TEXT},
        {"base64": "/w=="},
        {"base64": "AAAA", "type": "bytes"},
        None,
        5,
    ],
)
def test_nothing_else_is_a_file(value: Any) -> None:
    assert found(value) == []


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(TEXT[at : at + 76] for at in range(0, len(TEXT), 76)),
        TEXT.rstrip("="),
        TEXT + "=",
    ],
    ids=["wrapped", "unpadded", "padded too much"],
)
def test_base64_in_another_spelling_is_a_file_but_not_exact(text: str) -> None:
    value = {"type": "base64", "media_type": "image/png", "data": text}
    assert found(value) == [(("data",), "", "image/png", PNG, False)]


def test_bits_that_nobody_reads_make_it_not_exact() -> None:
    assert found({"type": "base64", "media_type": "image/png", "data": "QUJDRF=="}) == [
        (("data",), "", "image/png", b"ABCD", False)
    ]


def test_files_come_in_the_order_of_the_value() -> None:
    source = {"type": "base64", "media_type": "image/png"}
    texts = [base64.b64encode(bytes([n] * 3)).decode() for n in range(4)]
    value = {
        "b": [source | {"data": texts[0]}, {"c": source | {"data": texts[1]}}],
        "a": source | {"data": texts[2]},
    }
    assert [item.content[0] for item in find_embedded(value)] == [0, 1, 2]


def test_depth_is_no_matter() -> None:
    value: Any = {"type": "base64", "media_type": "image/png", "data": TEXT}
    for _ in range(5000):
        value = [value]
    assert len(find_embedded(value)) == 1


def test_records_without_a_hint_are_not_searched() -> None:
    assert may_embed(b'{"type":"base64"}')
    assert may_embed(b'{"mimeType":""}')
    assert not may_embed(b'{"text":"hello"}')
