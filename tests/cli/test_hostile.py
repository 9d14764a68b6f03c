"""No text of an event, a label, a name or a file can steer the terminal of whoever looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sealog

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\x1b[2J\x1b]0;owned\x07 bell\r\x08\x7f\x9b31m \u202e reversed \u2028 line \U000e0041 tag"
RAW = set(HOSTILE) - set(" []02J;owned31mreversedlinetagbell")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with sealog.open(path) as opened:
        session = opened.create_session("s", f"now {HOSTILE}", {f"name {HOSTILE}": f"[red]{HOSTILE}\n"})
        session.append(
            f"own.{HOSTILE}", f"{HOSTILE}\r\nnext [bold]line", {HOSTILE: [HOSTILE]}, key=f"k\n{HOSTILE}"
        )
        session.attach(b"", file_name=f"name {HOSTILE}")
    return path


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        ("show", "s"),
        ("show", "s", "--full"),
        ("show", "s", "--raw"),
        ("tail", "s"),
        ("ls",),
        ("verify",),
        ("grep", "."),
        ("grep", "-C", "1", "own"),
        ("stats",),
        ("stats", "s"),
        ("attachments", "s"),
    ],
)
def test_no_control_character_of_an_event_is_printed(invoke, hostile, command, options):
    result = invoke(*command, "--store", hostile, *options)
    assert result.exit_code == 0
    assert not RAW & set(result.output)


def test_markup_is_text(invoke, hostile):
    output = invoke("show", "s", "--store", hostile).stdout
    assert "[red]" in output
    assert "[bold]line" in output


def test_json_gives_hostile_text_back(invoke, lines, hostile):
    event, attachment = lines(invoke("show", "s", "--store", hostile, "--json").stdout)
    assert event["text"] == f"{HOSTILE}\r\nnext [bold]line"
    assert event["kind"] == f"own.{HOSTILE}"
    assert event["data"] == {HOSTILE: [HOSTILE]}
    assert attachment["data"]["file_name"] == f"name {HOSTILE}"
