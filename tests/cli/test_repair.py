"""repair saves what can be read into another store, and leaves the original alone."""

from __future__ import annotations

import sealog


def test_repair_of_a_damaged_session(invoke, damaged, tmp_path, lines):
    before = (damaged / "agent-1" / "log").read_bytes()
    result = invoke("repair", "agent-1", "--store", damaged, "--into", tmp_path / "saved")
    assert result.exit_code == 1
    assert "agent-1: 2 events copied to " in result.stdout
    assert "1 event lost" in result.stdout
    assert (damaged / "agent-1" / "log").read_bytes() == before
    assert invoke("verify", "--store", tmp_path / "saved").exit_code == 0
    shown = lines(invoke("show", "agent-1", "--json", "--store", tmp_path / "saved").stdout)
    assert [event["kind"] for event in shown] == ["sealog.lost", "assistant-message", "attachment"]


def test_repair_of_a_whole_session_exits_with_0(invoke, store, tmp_path, lines):
    result = invoke("repair", "agent-2", "--store", store, "--into", tmp_path / "saved", "--json")
    assert result.exit_code == 0
    (report,) = lines(result.stdout)
    assert (report["events"], report["lost_events"], report["sealed"]) == (1, 0, True)


def test_repair_names_lost_attachments(invoke, store, tmp_path):
    (store / "agent-1" / "attachments" / "2").unlink()
    result = invoke("repair", "agent-1", "--store", store, "--into", tmp_path / "saved")
    assert result.exit_code == 1
    assert "the attachment of position 2 is missing or damaged" in result.stdout


def test_repair_replaces_nothing(invoke, damaged, tmp_path):
    with sealog.open(tmp_path / "saved") as opened:
        opened.create_session("agent-1")
    result = invoke("repair", "agent-1", "--store", damaged, "--into", tmp_path / "saved")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert invoke("repair", "agent-1", "--store", damaged, "--into", damaged).exit_code == 2


def test_no_store_is_made_for_a_session_that_is_not_there(invoke, store, tmp_path):
    result = invoke("repair", "nosuch", "--store", store, "--into", tmp_path / "saved")
    assert result.exit_code == 2
    assert not (tmp_path / "saved").exists()
