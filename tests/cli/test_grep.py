"""grep finds texts and data, says where, and goes on past damage."""

from __future__ import annotations

import pytest

import sealog


@pytest.fixture
def logs(tmp_path):
    path = tmp_path / "store"
    with sealog.open(path) as opened:
        session = opened.create_session("a")
        session.append("user-message", "one\nTwo needle here\nthree")
        session.append("tool-call", "nothing", {"path": "needle.txt", "bytes": b"\x00"})
        session.append("note", "x" * 5_000 + "needle" + "y" * 5_000)
        session.append("note", "end")
        opened.create_session("b").append("note", "NEEDLE\nneedle")
        opened.create_session("c").append("note", "hay")
    return path


def test_grep_says_session_position_kind_and_line(invoke, logs):
    result = invoke("grep", "needle", "--store", logs)
    assert result.exit_code == 0
    first, data, long, other = result.stdout.splitlines()
    assert first == "a:0:user-message: Two needle here"
    assert data == 'a:1:tool-call: data: {"path": "needle.txt", "bytes": {"base64": "AA=="}}'
    assert long == "a:2:note: …" + "x" * 100 + "needle" + "y" * 100 + "…"
    assert other == "b:0:note: needle"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("needle", "b"), ["b:0"]),
        (("-i", "needle", "b"), ["b:0", "b:0"]),
        (("n..dle", "-k", "tool-call"), ["a:1"]),
        (("-F", "n..dle"), []),
        (("-F", "needle.txt"), ["a:1"]),
        (("-m", "1", "needle"), ["a:0", "b:0"]),
        (("^Two", "a"), ["a:0"]),
        ((r"one\nTwo", "a"), ["a:0"]),
        (("^$",), []),
        (("--", "-needle"), []),
    ],
)
def test_grep_options(invoke, logs, arguments, expected):
    result = invoke("grep", "--store", logs, *arguments)
    assert [":".join(line.split(":")[:2]) for line in result.stdout.splitlines()] == expected
    assert result.exit_code == (0 if expected else 3)


def test_grep_shows_events_around_a_match(invoke, logs):
    assert invoke("grep", "-C", "1", "-k", "tool-call", ".", "a", "--store", logs).stdout.splitlines() == [
        "a-0-user-message- one…",
        "a:1:tool-call: nothing",
        'a:1:tool-call: data: {"path": "needle.txt", "bytes": {"base64": "AA=="}}',
        f"a-2-note- {'x' * 200}…",
    ]


def test_groups_of_events_are_set_apart(invoke, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        session = opened.create_session("s")
        for number in range(10):
            session.append("note", f"event {number}")
    printed = invoke("grep", "-C", "1", "[26]", "--store", tmp_path / "store").stdout.splitlines()
    assert [line.split("event ")[-1] for line in printed] == ["1", "2", "3", "--", "5", "6", "7"]


def test_grep_counts(invoke, logs, lines):
    assert invoke("grep", "-c", "needle", "--store", logs).stdout == "a: 3\nb: 1\nc: 0\n"
    assert lines(invoke("grep", "-c", "needle", "c", "--json", "--store", logs).stdout) == [
        {"session_id": "c", "matching": 0}
    ]


def test_grep_names_sessions(invoke, logs):
    assert invoke("grep", "-l", "needle", "--store", logs).stdout == "a\nb\n"


def test_grep_json(invoke, logs, lines):
    first, *_ = lines(invoke("grep", "needle", "a", "--json", "--store", logs).stdout)
    assert first.pop("at") > 0
    assert first == {
        "session_id": "a",
        "position": 0,
        "kind": "user-message",
        "field": "text",
        "line": 2,
        "before": "Two ",
        "match": "needle",
        "after": " here",
    }


@pytest.mark.parametrize("pattern", ["(", "*", "[", "(?P<1>x)"])
def test_a_pattern_that_is_none_is_one_line(invoke, logs, pattern):
    result = invoke("grep", pattern, "--store", logs)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "is no regular expression" in result.stderr


@pytest.mark.parametrize("pattern", ["", "$", "^", "x*", r"\b"])
def test_a_pattern_that_matches_nothing_much_ends(invoke, logs, pattern):
    assert invoke("grep", "-c", pattern, "--store", logs).exit_code == 0
    assert invoke("grep", pattern, "--store", logs).exit_code == 0


def test_grep_names_damage_and_searches_the_others(invoke, damaged):
    result = invoke("grep", "done", "--store", damaged)
    assert result.exit_code == 1
    assert "agent-2:0:user-message: done" in result.stdout
    assert result.stderr.startswith("agent-1: ")


def test_an_unknown_session_is_an_error(invoke, logs):
    result = invoke("grep", "x", "nosuch", "--store", logs)
    assert result.exit_code == 2
    assert "'sealog ls' lists the sessions" in result.stderr
