"""One JSON document as many records, and back."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sealog
from sealog.formats import NotExportableError, UnknownFormatError, export_session, import_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sealog.formats import ImportReport

    Take = Callable[..., ImportReport]
    Events = Callable[..., list[sealog.Event]]
    Give = Callable[..., bytes]

HI = {"role": "user", "content": "hi"}

DOCUMENTS = {
    "messages": json.dumps([HI, HI]).encode(),
    "an object of messages": json.dumps({"model": "m", "messages": [HI, HI], "n": 1}).encode(),
    "a list of objects": json.dumps([{"id": 1, "x": [HI], "y": []}, {}, {"x": []}, 5, "a", [1]]).encode(),
    "pretty": json.dumps({"messages": [HI, HI], "n": {"a": [1]}}, indent=2).encode(),
    "CRLF and a byte order mark": b"\xef\xbb\xbf" + json.dumps([HI], indent=2).replace("\n", "\r\n").encode(),
    "numbers": b'[{"role":"user","content":"","n":[1.0,1,1e400,0.1000000000000000055,NaN]}]',
    "a key twice in a record": b'[{"role":"user","content":"a","content":"b"}]',
    "half a surrogate pair": b'[{"role":"user","content":"\\ud83c"}]',
    "a bad record": b'[{"role":"user","content":""}, {bad}, {"role":"user","content":""}]',
    "a bad word": b'{"messages":[{"role":"user","content":""}], "n": nope}',
    "not UTF-8": b'[{"role":"user","content":"\xff"}]',
    "nested deeply": b'[{"role":"user","content":' + b"[" * 400 + b"]" * 400 + b"}]",
    "nested without end": b'[{"role":"user","content":1},' + b"[" * 100_000 + b"]" * 100_000 + b"]",
    "odd keys": json.dumps(
        {"": 1, "a/b~c": [HI], "~1": 2, "0": [3], "ключ": 4, "x" * 200: 5, "messages": [HI]}
    ).encode(),
}
BROKEN = {
    "cut off": json.dumps({"messages": [HI, HI]}).encode()[:-8],
    "a key twice": b'{"messages":[{"role":"user","content":"a"}],"messages":[]}',
    "half a surrogate pair in a key": b'{"messages":[{"role":"user","content":"a"}],"\\ud800":1}',
    "a very long key": json.dumps({"messages": [HI], "k" * 5000: 1}).encode(),
    "something behind it": json.dumps([HI]).encode() + b" x",
    "a comma too much": b'[{"role":"user","content":"a"},]',
    "not UTF-8 in a key": b'{"messages":[{"role":"user","content":"a"}],"\xff":1}',
}


def text(raw: bytes) -> Any:
    """Parse and write again, so that ints and floats differ; text that is no JSON as it is."""
    try:
        return json.dumps(json.loads(raw))
    except (ValueError, RecursionError):
        return b"".join(raw.split()).replace(b",", b"")


@pytest.mark.parametrize("content", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("name", ["openai-chat", "swe-agent"])
def test_a_document_comes_back(take: Take, give: Give, events: Events, content: bytes, name: str) -> None:
    report = take(content, format=name, name="chat.json")
    assert text(give()) == text(content)
    count = len(events())
    again = take(content, format=name, name="chat.json")
    assert (again.added, again.known, again.conflicting) == (0, report.records, 0)
    assert len(events()) == count
    assert len(give(format="jsonl").splitlines()) == report.records + report.attachments
    for page in ("markdown", "html"):
        assert give(format=page)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_what_is_no_document_is_kept_whole(
    take: Take, give: Give, events: Events, store: sealog.Store, content: bytes
) -> None:
    report = take(content, format="openai-chat", name="chat.json")
    assert (report.records, report.added, report.attachments, report.troubled) == (1, 1, 1, 1)
    assert [event.kind for event in events()] == ["attachment", "openai-chat.document"]
    assert store.open_session("chat").read_attachment(0).bytes == content
    assert give() == content
    assert take(content, format="openai-chat", name="chat.json").known == 1
    lines = [json.loads(line) for line in give(format="jsonl").splitlines()]
    assert [line["kind"] for line in lines] == ["attachment", "openai-chat.document"]
    good = json.dumps([HI]).encode()
    assert take(good, format="openai-chat", name="chat.json").added == 1
    assert text(give()) == text(good)
    broken_again = take(content, format="openai-chat", name="chat.json")
    assert (broken_again.added, broken_again.conflicting) == (0, 1)
    assert text(give()) == text(good)


def test_the_line_of_a_problem_is_told(take: Take) -> None:
    content = b'{\n"messages": [\n{"role": "user", "content": "a"},\n\n  {bad}\n],\n"n": nope}'
    report = take(content, name="chat.json")
    assert [problem.line for problem in report.problems] == [5, 7]
    report = take(content[:-20], name="cut.json", format="openai-chat")
    assert [problem.line for problem in report.problems] == [5]
    assert "the file ends" in report.problems[0].reason


def test_a_document_that_grew_gives_its_new_records(take: Take, give: Give, events: Events) -> None:
    documents: list[Any] = [
        {"history": [], "info": {"a": 1}},
        {"history": [HI], "info": {"a": 1}},
        {"history": [HI] * 12, "trajectory": [{"action": "ls"}], "info": {"a": 1}},
        {
            "history": [HI] * 13,
            "trajectory": [{"action": "ls"}, {"action": "cd"}],
            "info": {"a": 1},
            "z": None,
        },
    ]
    added = []
    for document in documents:
        report = take(json.dumps(document).encode(), format="swe-agent", name="chat.traj")
        assert not report.conflicting
        added.append(report.added)
        assert json.loads(give()) == document
    assert added == [2, 1, 12, 3]
    assert len(events()) == 18


def test_two_unlike_documents_in_one_session_are_no_document(take: Take, give: Give) -> None:
    take(json.dumps({"messages": [HI]}).encode(), name="chat.json")
    take(json.dumps([HI, HI]).encode(), name="chat.json")
    with pytest.raises(NotExportableError, match="unlike"):
        give()
    assert len(give(format="jsonl").splitlines()) == 3


def test_a_member_that_changed_is_a_conflict(take: Take, give: Give) -> None:
    first = {"history": [HI, HI], "info": {"exit_status": None}}
    take(json.dumps(first).encode(), name="chat.traj")
    second = {"history": [HI, HI | {"content": "ho"}, HI], "info": {"exit_status": "submitted"}}
    report = take(json.dumps(second).encode(), name="chat.traj")
    assert (report.added, report.known) == (1, 1)
    assert [conflict.record for conflict in report.conflicts] == [("history", 1), ("info",)]
    assert json.loads(give()) == {"history": [HI, HI, HI], "info": {"exit_status": None}}


@pytest.mark.parametrize(
    "content", [b"{", b"[", b'{"a": 1} {"b": 2}', b"text", b'{"a": [1, 2]}\n]', b"[1, 2]", b"5"]
)
def test_other_content_is_no_document_of_these_formats(take: Take, content: bytes) -> None:
    with contextlib.suppress(UnknownFormatError):
        assert take(content, name="chat.json").format == "jsonl"


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.text(max_size=3)
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
NAMES = st.sampled_from(
    ["messages", "history", "trajectory", "info", "role", "content", "action", "tool_calls"]
)
CONTAINER = st.dictionaries(
    NAMES | TEXT, st.lists(st.dictionaries(NAMES, JSON | st.sampled_from(["user", "tool"]))) | JSON
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    CONTAINER | st.lists(CONTAINER | JSON, max_size=5),
    st.sampled_from(["openai-chat", "swe-agent"]),
    st.sampled_from([None, 1]),
)
def test_any_document_comes_back(tmp_path: Path, document: Any, name: str, indent: int | None) -> None:
    content = json.dumps(document, indent=indent).encode()
    path = tmp_path / "chat.json"
    path.write_bytes(content)
    with sealog.open(tmp_path / "store") as store:
        for session_id in store.session_ids():
            store.delete_session(session_id)
        report = import_file(store, path, format=name)
        again = import_file(store, path, format=name)
        assert (again.added, again.known, again.conflicting) == (0, report.records, 0)
        export_session(store.open_session("chat"), tmp_path / "out", overwrite=True)
    assert text((tmp_path / "out").read_bytes()) == text(content)
