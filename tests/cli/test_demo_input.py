"""What the demo makes of the lines of a transcript: an event of every line, whatever it holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealog.cli.demo.input import LINE_BYTES_MAX, find_transcripts, mean_size, read_transcript, record_of_line
from sealog.cli.demo.transcript import kind_and_text
from sealog.cli.demo.turns import generated_turns
from sealog.storage.events import encode_event

if TYPE_CHECKING:
    from pathlib import Path


def test_generated_turns_are_repeatable_and_storable():
    turns = generated_turns(3)
    assert turns == generated_turns(3) != generated_turns(4)
    assert {turn.kind for turn in turns} >= {"user-message", "assistant-message", "tool-call", "tool-result"}
    assert mean_size(turns) > 100


@pytest.mark.parametrize(
    ("record", "kind", "text"),
    [
        ({"type": "user", "message": {"role": "user", "content": "hello"}}, "user-message", "hello"),
        ({"role": "user", "content": "hello"}, "user-message", "hello"),
        ({"role": "assistant", "content": "hi", "tool_calls": None}, "assistant-message", "hi"),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}, "tool-call", '[{"id": 1}]'),
        ({"role": "tool", "content": "42"}, "tool-result", "42"),
        ({"role": "developer", "content": "be kind"}, "system-message", "be kind"),
        ({"type": "system", "level": "error", "content": "no"}, "system-error", "no"),
        (
            {"message": {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "x"}]}},
            "assistant-message",
            "a\n[x]",
        ),
        (
            {"message": {"role": "assistant", "content": [{"type": "tool_use", "name": "ls", "input": {}}]}},
            "tool-call",
            "ls({})",
        ),
        (
            {"message": {"role": "user", "content": [{"type": "tool_result", "content": "out"}]}},
            "tool-result",
            "out",
        ),
        (
            {
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "is_error": True, "content": "x"}],
                }
            },
            "tool-error",
            "x",
        ),
        (
            {
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "content": [{"text": "deep"}]}],
                }
            },
            "tool-result",
            "deep",
        ),
        ({"type": "summary", "summary": "what was done"}, "transcript.summary", "what was done"),
        ({"type": "attachment", "content": "c"}, "transcript.attachment", "c"),
        ({"type": "no name\n"}, "transcript.record", '{"type": "no name\\n"}'),
        ({"type": 7, "message": "text"}, "transcript.record", "text"),
        ("only text", "transcript.value", "only text"),
        ([1, 2], "transcript.value", "[1, 2]"),
        (None, "transcript.value", "null"),
        ({}, "transcript.record", "{}"),
    ],
)
def test_kind_and_text_of_a_record(record, kind, text):
    assert kind_and_text(record) == (kind, text)


def test_a_record_keeps_the_whole_line_as_data():
    record = record_of_line(b'{"role": "user", "content": "hello", "n": [1, 2.5, null]}')
    assert record.data == {"role": "user", "content": "hello", "n": [1, 2.5, None]}


@pytest.mark.parametrize(
    "line",
    [
        b"not JSON",
        b"{",
        b'{"n": NaN}',
        b'{"n": 1e999}',
        b'{"n": 123456789012345678901234567890}',
        b'{"n": ' + b"9" * 5_000 + b"}",
        b'{"text": "\\ud800"}',
        b"[" * 300 + b"]" * 300,
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_stored_as_data_is_kept_as_raw_text(line):
    record = record_of_line(line)
    assert (record.kind, record.text, record.data) == ("transcript.raw", line.decode(), None)


def test_bytes_that_are_no_text_are_kept_as_bytes():
    record = record_of_line(b"caf\xe9")
    assert (record.text, record.data) == ("caf\\xe9", {"line": b"caf\xe9"})


@given(
    st.binary()
    | st.recursive(
        st.none() | st.floats() | st.integers() | st.text(st.characters()),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["type", "role", "content", "message", "text"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
@example(b'{"content":[{"type":[]}]}')
def test_every_line_becomes_an_event(line):
    encode_event(*record_of_line(line), 0, None)


def test_a_file_is_read_line_by_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"role": "user", "content": "a"}\r\n\n  \n"b"\nlast, without end')
    transcript = read_transcript(path)
    assert [record.text for record in transcript.records] == ["a", "b", "last, without end"]
    assert transcript.skipped == 0


def test_lines_over_the_limits_are_counted(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"x" * (LINE_BYTES_MAX + 1) + b"\nshort\n")
    assert read_transcript(path).skipped == 1
    assert [record.text for record in read_transcript(path).records] == ["short"]
    assert read_transcript(path, 100).skipped == 2


def test_a_folder_stands_for_its_transcripts(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "c.txt", "deep/d.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    found = find_transcripts([tmp_path, tmp_path / "c.txt"])
    assert [path.name for path in found] == ["a.jsonl", "b.jsonl", "d.jsonl", "c.txt"]


def test_every_line_of_the_samples_is_kept(shared: Path):
    paths = find_transcripts([shared / "samples" / "claude-code"])
    assert paths
    for path in paths:
        transcript = read_transcript(path)
        filled = [line for line in path.read_bytes().splitlines() if line.strip()]
        assert (len(transcript.records), transcript.skipped) == (len(filled), 0)
        assert all(record.text for record in transcript.records)
