"""seal makes sessions final and prints the receipt."""

from __future__ import annotations

import sealog


def test_seal_prints_the_receipt(invoke, store, lines):
    (found,) = lines(invoke("seal", "agent-1", "--store", store, "--json").stdout)
    with sealog.open(store, read_only=True) as opened:
        assert opened.open_session("agent-1").is_sealed
    assert (found["session_id"], found["events"], len(found["sha256"])) == ("agent-1", 3, 64)
    again = invoke("seal", "agent-1", "agent-2", "--store", store)
    assert again.exit_code == 0
    assert again.stdout.splitlines()[0] == f"agent-1: sealed, 3 events, sha256 {found['sha256']}"


def test_a_lost_attachment_is_not_sealed_over(invoke, store):
    (store / "agent-1" / "attachments" / "2").unlink()
    result = invoke("seal", "agent-1", "--store", store)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    with sealog.open(store, read_only=True) as opened:
        assert not opened.open_session("agent-1").is_sealed


def test_seal_says_what_recovery_cut_off(invoke, torn):
    result = invoke("seal", "agent-1", "--store", torn)
    assert result.exit_code == 0
    assert result.stderr == "agent-1: 19 bytes of an interrupted write were cut off\n"


def test_a_session_that_is_in_use_is_left_alone(run, store):
    with sealog.open(store) as opened, opened.open_session("agent-1"):
        done = run("seal", "agent-1", "--store", store)
    assert done.returncode == 2
    assert "end that program first" in done.stderr
    assert done.stderr.count("\n") == 1


def test_seal_makes_no_store(invoke, tmp_path):
    assert invoke("seal", "s", "--store", tmp_path / "nowhere").exit_code == 2
    assert not (tmp_path / "nowhere").exists()
