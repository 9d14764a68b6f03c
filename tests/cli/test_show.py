"""show prints a session as a transcript."""

from __future__ import annotations

import re

import pytest

import sealog
from sealog.cli.folding import fold


def test_show_prints_header_and_events(invoke, store):
    output = invoke("show", "agent-1", "--store", store).stdout
    assert output.startswith("agent-1: 3 events, created 2026-01-02T03:04:05Z\ntitle: first try\n")
    assert "0  user-message  " in output
    assert "\n    hello\n" in output
    assert "\n    hi\n    there\n" in output
    assert "key k-1\n" in output
    assert "\n    [file shot.png, image/png, 18 B]\n" in output


def test_show_says_sealed(invoke, store):
    assert "1 event, sealed, " in invoke("show", "agent-2", "--store", store).stdout


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        ((), [0, 1, 2]),
        (("--from", "1"), [1, 2]),
        (("--to", "0"), [0]),
        (("--from", "1", "--to", "1"), [1]),
        (("--tail", "2"), [1, 2]),
        (("-n", "0"), []),
        (("-n", "9"), [0, 1, 2]),
        (("--from", "9"), []),
        (("--to", "9"), [0, 1, 2]),
        (("-n", "2", "--to", "1"), [1]),
    ],
)
def test_show_a_part(invoke, lines, store, options, positions):
    result = invoke("show", "agent-1", "--store", store, "--json", *options)
    assert result.exit_code == 0
    assert [line["position"] for line in lines(result.stdout)] == positions


def test_show_json_is_whole(invoke, lines, store):
    first, second, _ = lines(invoke("show", "agent-1", "--store", store, "--json").stdout)
    assert first.pop("at") > 0
    assert first == {
        "position": 0,
        "kind": "user-message",
        "text": "hello",
        "data": {"n": 1, "list": [True, None, 1.5, "text"], "bytes": {"base64": "AP8="}},
        "key": None,
    }
    assert second["key"] == "k-1"


def test_show_cuts_long_texts_unless_told_not_to(invoke, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session("s").append("user-message", "x" * 2_500 + "end", {"long": "y" * 900})
    arguments = ("show", "s", "--store", tmp_path / "store")
    short, full = invoke(*arguments).stdout, invoke(*arguments, "--full").stdout
    assert "… (503 more characters)" in short
    assert "end" not in short
    assert "x" * 2_500 + "end" in full
    assert "y" * 900 in full
    assert "more characters" not in full


def test_show_prints_what_it_can_before_it_meets_damage(invoke, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        session = opened.create_session("s")
        for number in range(400):
            session.append("user-message", f"event {number} {'x' * 10_000}")
    log = tmp_path / "store" / "s" / "log"
    body = log.read_bytes()
    log.write_bytes(body.replace(b"event 30 ", b"Event 30 "))
    result = invoke("show", "s", "--store", tmp_path / "store")
    assert result.exit_code == 1
    assert "event 29 " in result.stdout
    assert "event 30 " not in result.stdout.lower()
    assert result.stderr.startswith("sealog: ")
    assert result.stderr.count("\n") == 1


# -- tools


@pytest.fixture
def tools(tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        session = opened.create_session("s")
        session.append("tool-call", "first call", {"call_id": "a"})
        session.append("tool-call", "second call", {"call_id": "b"})
        session.append("assistant-message", "meanwhile")
        session.append("tool-result", "second result", {"call_id": "b"})
        session.append("tool-error", "first failed\n" + "\n".join(map(str, range(50))), {"call_id": "a"})
        session.append("tool-result", "nobody asked", {"call_id": "c"})
        session.append("tool-call", "never answered")
    return tmp_path / "store"


def heads(output: str) -> list[str]:
    found = re.findall(r"^(    └ )?(\d+)  ([a-z-]+)(?:.*(\(no result\)))?", output, re.MULTILINE)
    return [
        "".join((mark and "└", position, " ", kind, note and " !")) for mark, position, kind, note in found
    ]


def test_show_puts_results_below_their_calls(invoke, tools):
    output = invoke("show", "s", "--store", tools).stdout
    assert heads(output) == [
        "0 tool-call",
        "└4 tool-error",
        "1 tool-call",
        "└3 tool-result",
        "2 assistant-message",
        "5 tool-result",
        "6 tool-call !",
    ]
    assert "      second result\n" in output
    assert "more characters)" in output
    assert "      49\n" not in output
    assert "      49\n" in invoke("show", "s", "--store", tools, "--full").stdout


def test_show_of_a_part_does_not_call_a_later_result_missing(invoke, tools):
    assert heads(invoke("show", "s", "--store", tools, "--to", "1").stdout) == ["0 tool-call", "1 tool-call"]
    assert heads(invoke("show", "s", "--store", tools, "--from", "3", "--to", "4").stdout) == [
        "3 tool-result",
        "4 tool-error",
    ]


def test_show_raw_folds_and_cuts_nothing(invoke, tools):
    output = invoke("show", "s", "--store", tools, "--raw").stdout
    assert [line.split()[0] for line in output.splitlines() if re.match(r"\d+  ", line)] == list("0123456")
    assert '      "call_id": "a"\n' in output
    assert "    49\n" in output
    assert " ns" in output


def calls(count: int) -> list[tuple[int, sealog.Event]]:
    return list(enumerate([sealog.Event("tool-call", str(number), at=0) for number in range(count)]))


def test_folding_holds_back_a_few_hundred_events_only():
    given = iter([*calls(1), *((n, sealog.Event("note", "x", at=0)) for n in range(1, 10_000))])
    first = next(fold(given))
    assert (first.position, first.open) == (0, True)
    assert next(given)[0] < 1_000


def test_a_result_that_comes_too_late_stands_on_its_own():
    events = [*calls(1), *((n, sealog.Event("note", "x", at=0)) for n in range(1, 500))]
    events.append((500, sealog.Event("tool-result", "late", at=0)))
    blocks = list(fold(events))
    assert [block.position for block in blocks] == list(range(501))


def test_calls_without_ids_are_answered_in_order():
    answers = [(position, sealog.Event("tool-result", "", at=0)) for position in (2, 3)]
    first, second = fold([*calls(2), *answers])
    assert [position for position, _ in first.answers] == [2]
    assert [position for position, _ in second.answers] == [3]


def test_of_imported_records_the_text_is_shown(invoke, tmp_path):
    source = tmp_path / "chat.jsonl"
    source.write_text('{"role": "user", "text": "hello", "extra": "more"}\n')
    assert invoke("import", source, "--store", tmp_path / "store").exit_code == 0
    assert '"extra"' not in invoke("show", "chat", "--store", tmp_path / "store").stdout
    assert '"extra"' in invoke("show", "chat", "--store", tmp_path / "store", "--raw").stdout
