"""ls lists the sessions of a store, whatever state they are in, at any width."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from rich.console import Console

import sealog
from sealog.cli.columns import Column, print_columns


def test_ls_lists_the_sessions(invoke, store):
    result = invoke("ls", "--store", store)
    assert result.exit_code == 0
    heading, *rows = [re.split("  +", line) for line in result.stdout.splitlines()]
    assert heading == ["session", "title", "events", "size", "status", "last activity (UTC)"]
    assert [(row[0], row[-4], row[-2]) for row in rows] == [
        ("agent-1", "3", "ok"),
        ("agent-2", "1", "sealed"),
        ("agent-3", "0", "ok"),
    ]
    assert rows[0][1] == "first try"


def test_ls_json_is_an_object_a_line(invoke, lines, store):
    first, second, third = lines(invoke("ls", "--store", store, "--json").stdout)
    assert first["session_id"] == "agent-1"
    assert first["labels"] == {"title": "first try"}
    assert (second["sealed"], second["status"]) == (True, "ok")
    assert (third["events"], third["last_at"]) == (0, None)


def test_ls_of_an_empty_store_prints_nothing_on_stdout(invoke, empty):
    result = invoke("ls", "--store", empty)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"no sessions in {empty}\n"
    assert invoke("ls", "--store", empty, "--json").output == ""


def test_ls_names_damage_and_exits_with_1(invoke, lines, damaged):
    (damaged / "agent-2" / "log").write_bytes(b"no log at all, but longer than its header would be")
    result = invoke("ls", "--store", damaged)
    assert result.exit_code == 1
    assert "damaged" in result.stdout
    assert "agent-2: " in result.stderr
    found = lines(invoke("ls", "--store", damaged, "--json").stdout)
    assert [line["status"] for line in found] == ["ok", "damaged", "ok"]  # agent-1 only shows to verify


def test_ls_shows_a_torn_tail_as_no_damage(invoke, torn):
    result = invoke("ls", "--store", torn)
    assert result.exit_code == 0
    assert "torn" in result.stdout


def test_ls_loses_no_character_of_an_id_in_60_columns(invoke, tmp_path):
    name = "agent-" + "0123456789" * 8
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session(name)
    output = invoke("ls", "--store", tmp_path / "store", COLUMNS="60").stdout
    assert max(map(len, output.splitlines())) <= 60
    folded = "".join(line.split()[0] for line in output.splitlines()[1:])
    assert folded == name
    assert name in invoke("ls", "--store", tmp_path / "store").stdout  # a file is as wide as it must be


def ids(result) -> list[str]:
    return [line.split()[0] for line in result.stdout.splitlines()[1:]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--sort", "events"), ["agent-1", "agent-2", "agent-3"]),
        (("--sort", "events", "-r"), ["agent-3", "agent-2", "agent-1"]),
        (("--sort", "size"), ["agent-1", "agent-2", "agent-3"]),
        (("--sort", "activity"), ["agent-2", "agent-1", "agent-3"]),
        (("--sort", "created"), ["agent-1", "agent-2", "agent-3"]),
        (("--sort", "status"), ["agent-1", "agent-3", "agent-2"]),
        (("--sort", "title", "-r"), ["agent-1", "agent-2", "agent-3"]),
        (("--reverse",), ["agent-3", "agent-2", "agent-1"]),
        (("--status", "sealed"), ["agent-2"]),
        (("--status", "ok"), ["agent-1", "agent-3"]),
        (("--status", "ok", "--status", "sealed"), ["agent-1", "agent-2", "agent-3"]),
    ],
)
def test_ls_sorts_and_selects(invoke, store, options, expected):
    assert ids(invoke("ls", "--store", store, *options)) == expected


def test_ls_says_so_if_no_session_has_the_status(invoke, store):
    result = invoke("ls", "--store", store, "--status", "damaged")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no session has that status\n"


@pytest.mark.parametrize("options", [("--sort", "nonsense"), ("--status", "nonsense")])
def test_ls_names_what_it_takes(invoke, store, options):
    result = invoke("ls", "--store", store, *options)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "'nonsense' is not one of" in result.stderr


def test_ls_opens_no_session(invoke, store, monkeypatch):
    monkeypatch.setattr(sealog.Store, "open_session", None)
    monkeypatch.setattr(sealog.Store, "describe", None)
    assert len(ids(invoke("ls", "--store", store))) == 3


@pytest.mark.parametrize("width", [30, 40, 60, 72, 80, 200])
def test_ls_fits_the_width(invoke, tmp_path, width):
    with sealog.open(tmp_path / "store") as opened:
        for number in range(3):
            session = opened.create_session(f"agent-{number}", labels={"title": "多 wide title " * 9})
            session.append("user-message", "x")
    output = invoke("ls", "--store", tmp_path / "store", COLUMNS=str(width)).stdout
    assert max(map(cell_len, output.splitlines())) <= width
    assert ids(invoke("ls", "--store", tmp_path / "store", COLUMNS=str(width)))[0] == "agent-0"


def test_rows_beyond_the_first_block_stay_in_their_columns(capsys):
    rows = [[(f"row-{number}", ""), (str(10**number), "")] for number in (1, 2)] * 400
    rows.append([("last", ""), ("1" * 30, "")])
    console = Console(width=80)
    print_columns(console, [Column("name"), Column("value", right=True)], rows)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 802
    assert printed[0] == "name   value"
    assert printed[-1] == "last   " + "1" * 30
    assert printed[-2].endswith(" 100")
