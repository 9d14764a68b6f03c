"""JSON Lines that others have written, good and bad: what becomes of each, into a session and out again."""

from __future__ import annotations

import json
import string
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sealog
from sealog.formats import UnknownFormatError, export_session, import_file
from sealog.formats.importing import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]
    Give = Callable[..., bytes]
    Check = Callable[[bytes, bytes], None]

GOOD = b'{"role": "user", "text": "hi"}'

LINES = {
    "whole numbers and not": b'{"role":"user","text":"","n":[1, 1.0, -0.0, 1e2, 0.10]}\n',
    "huge numbers": b'{"role":"user","text":"","n":[123456789012345678901234567890, -9999999999999999999]}\n',
    "a number of 5000 digits": b'{"role":"user","text":"","n":' + b"7" * 5000 + b"}\n",
    "numbers out of range": b'{"role":"user","text":"","n":[1e400, -1e400, 1e-400]}\n',
    "more digits than a float has": b'{"role":"user","text":"","n":0.1000000000000000055}\n',
    "minus zero": b'{"role":"user","text":"","n":-0}\n',
    "NaN and Infinity": b'{"role":"user","text":"","n":[NaN, Infinity, -Infinity]}\n',
    "a key twice": b'{"role":"user","text":"a","text":"b"}\n',
    "half a surrogate pair": b'{"role":"user","text":"\\ud83c"}\n' + GOOD + b"\n",
    "half a surrogate pair in a key and a role": b'{"role":"\\ud83c","\\udfff":1}\n',
    "a surrogate pair": b'{"role":"user","text":"\\ud83c\\udf89"}\n',
    "NUL in a text": b'{"role":"user","text":"a\\u0000b"}\n',
    "line ends of Unicode": '{"role":"user","text":"a\u2028b\u2029c\x85d\x0be\\u001c\\r"}\n'.encode().replace(
        b"\x0b", b"\\u000b"
    ),
    "CRLF": GOOD + b"\r\n" + GOOD + b"\r\n",
    "CRLF and a bad line": b"bad\r\n" + GOOD + b"\r\n",
    "blank lines": b"\n\n" + GOOD + b"\n \t\r\n\n" + GOOD + b"\n\n",
    "no line end at the end": GOOD + b"\n" + GOOD,
    "a byte order mark": b"\xef\xbb\xbf" + GOOD + b"\n" + GOOD + b"\n",
    "a byte order mark in the middle": GOOD + b"\n\xef\xbb\xbf" + GOOD + b"\n",
    "no objects": b'"text"\n42\n1.5\n[1]\nnull\ntrue\n[]\n{}\n""\n' + GOOD + b"\n",
    "nested deeply": b'{"role":"user","text":"","n":' + b"[" * 400 + b"]" * 400 + b"}\n",
    "nested without end": GOOD + b"\n" + b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "not UTF-8": GOOD + b"\n" + b'{"role":"user","text":"\xff\xfe"}\n' + GOOD + b"\n",
    "surrogates in UTF-8": GOOD + b"\n" + b'{"role":"user","text":"\xed\xa0\x80"}\n',
    "a line of zeros": GOOD + b"\n" + b"\0" * 413 + b"\n",
    "zeros at the end": GOOD + b"\n" + b"\0" * 4096,
    "two records on a line": GOOD + b"\n" + GOOD + GOOD + b"\n",
    "a torn line in the middle": GOOD[:17] + b"\n" + GOOD + b"\n" + GOOD + b"\n",
    "a torn last line": GOOD + b"\n" + GOOD[:17],
    "odd values where others have text": b'{"role":["user"],"kind":{},"text":5}\n{"kind":" ","role":7}\n'
    b'{"role":"","content":{"a":1}}\n',
    "odd kinds": b'{"kind":"attachment","text":"x"}\n{"kind":"'
    + b"k" * 300
    + b'"}\n{"role":"'
    + b"r" * 300
    + b'","text":""}\n',
    "a time out of range": b'{"role":"user","text":"","timestamp":"0001-01-01T00:00:00Z","at":-1}\n',
    "keys that look like ours": b'{"format":"jsonl","record":0,"digest":"'
    + b"0" * 32
    + b'","json":1,"kind":"x","key":"jsonl:0"}\n',
    "__proto__": b'{"role":"user","text":"","__proto__":{"a":1},"":0}\n',
}


@pytest.mark.parametrize("content", LINES.values(), ids=LINES)
def test_every_record_is_kept_and_given_back(
    take: Take, give: Give, events: Events, same_lines: Check, content: bytes
) -> None:
    report = take(content, format="jsonl")
    same_lines(content, give())
    same_lines(content, give(format="jsonl"))
    count = len(events())
    assert report.added == report.records
    assert take(content, format="jsonl").known == report.records
    assert len(events()) == count
    for page in ("markdown", "html"):
        assert give(format=page)


@pytest.mark.parametrize("content", LINES.values(), ids=LINES)
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_every_format_of_lines_keeps_every_record(
    take: Take, give: Give, same_lines: Check, content: bytes, name: str
) -> None:
    take(content, format=name)
    same_lines(content, give())
    same_lines(content, give(format="jsonl"))


@pytest.mark.parametrize(
    ("case", "problems"),
    [
        ("CRLF", []),
        ("blank lines", []),
        ("no objects", []),
        ("half a surrogate pair", []),
        ("huge numbers", []),
        ("NaN and Infinity", [Problem(1, "-Infinity is not JSON")]),
        ("nested deeply", []),
        ("nested without end", [Problem(2, "nested too deeply to be read")]),
        ("not UTF-8", [Problem(2, "not UTF-8 (invalid start byte at byte 23)")]),
        ("a line of zeros", [Problem(2, "not JSON (Expecting value: line 1 column 1 (char 0))")]),
        ("two records on a line", [Problem(2, "not JSON (Extra data: line 1 column 31 (char 30))")]),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(take: Take, case: str, problems: list[Problem]) -> None:
    report = take(LINES[case], format="jsonl")
    assert report.problems == problems
    assert report.troubled == len(problems)


def test_blank_lines_count_as_lines_and_not_as_records(take: Take, events: Events) -> None:
    report = take(b"\n\nbad\n\n" + GOOD + b"\n", format="jsonl")
    assert [problem.line for problem in report.problems] == [3]
    assert [event.key for event in events()] == ["jsonl:0", "jsonl:1"]


def test_a_file_that_goes_on_replaces_its_unfinished_line(
    take: Take, give: Give, events: Events, same_lines: Check
) -> None:
    content = b"".join(json.dumps({"role": "user", "text": str(n)}).encode() + b"\n" for n in range(4))
    for end in range(1, len(content) + 1):
        report = take(content[:end], format="jsonl")
        assert not report.conflicting
        same_lines(content[:end], give())
    kinds = [event.kind for event in events()]
    assert kinds.count("user-message") == 4
    assert "jsonl.incomplete" in kinds


def test_an_unfinished_line_is_taken_once(take: Take, events: Events) -> None:
    for _ in range(3):
        report = take(GOOD + b"\n" + GOOD[:17], format="jsonl")
        assert [problem.line for problem in report.problems] == [2]
    assert len(events()) == 2


def test_a_number_at_the_end_may_go_on(take: Take, give: Give) -> None:
    take(b"4", format="jsonl")
    report = take(b"42\n", format="jsonl")
    assert (report.added, report.conflicting) == (1, 0)
    assert give() == b"42\n"


def test_a_known_record_that_is_cut_off_now_is_a_conflict(take: Take, give: Give, same_lines: Check) -> None:
    content = GOOD + b"\n" + GOOD + b"\n"
    take(content)
    report = take(content[:-5])
    assert (report.added, report.known, report.conflicting) == (0, 1, 1)
    same_lines(content, give())


def test_an_empty_file_has_no_format_of_its_own(take: Take, give: Give, store: sealog.Store) -> None:
    for content in (b"", b"\n \n", b"\xef\xbb\xbf"):
        with pytest.raises(UnknownFormatError):
            take(content)
    assert store.session_ids() == []
    report = take(b"", format="jsonl")
    assert (report.records, report.added) == (0, 0)
    assert give() == b""
    assert take(GOOD + b"\n").added == 1


TEXT = st.text(st.characters(codec="utf-8"), max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            TEXT | st.sampled_from(["role", "content", "text", "type", "message", "payload"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)
NAMES = [
    "user",
    "assistant",
    "tool",
    "system",
    "text",
    "tool_use",
    "tool_result",
    "message",
    "function_call",
    "summary",
]
RECORD = st.dictionaries(
    st.sampled_from(
        ["role", "kind", "type", "content", "text", "message", "payload", "tool_calls", "at", "timestamp"]
    )
    | st.text(string.ascii_lowercase, max_size=3),
    st.sampled_from(NAMES)
    | JSON
    | st.lists(
        st.dictionaries(
            st.sampled_from(["type", "text", "id", "input", "content"]), st.sampled_from(NAMES) | JSON
        )
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.lists(RECORD | JSON | st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")), max_size=8),
    st.sampled_from(["jsonl", "claude-code", "codex"]),
    st.booleans(),
)
def test_any_lines_come_back(
    tmp_path: Path, same_lines: Check, records: list[Any], name: str, ascii_only: bool
) -> None:
    lines = [
        record
        if isinstance(record, bytes)
        else json.dumps(record, ensure_ascii=ascii_only).encode(errors="surrogatepass")
        for record in records
    ]
    content = b"".join(line + b"\n" for line in lines)
    path = tmp_path / "chat.jsonl"
    path.write_bytes(content)
    with sealog.open(tmp_path / "store") as store:
        for session_id in store.session_ids():
            store.delete_session(session_id)
        report = import_file(store, path, format=name)
        again = import_file(store, path, format=name)
        assert (again.added, again.known, again.conflicting) == (0, report.records, 0)
        export_session(store.open_session("chat"), tmp_path / "out", overwrite=True)
    same_lines(content, (tmp_path / "out").read_bytes())
