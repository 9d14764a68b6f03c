"""stats counts, of a store at a glance and of sessions event by event."""

from __future__ import annotations


def test_stats_of_a_store(invoke, store, lines):
    (found,) = lines(invoke("stats", "--store", store, "--json").stdout)
    assert found["statuses"] == {"ok": 2, "sealed": 1}
    assert (found["sessions"], found["events"], found["largest"]) == (3, 4, "agent-1")
    assert found["size_bytes"] > found["largest_bytes"] > 0
    text = invoke("stats", "--store", store).stdout
    assert "sessions" in text
    assert "  sealed" in text


def test_stats_of_sessions(invoke, store, lines):
    first, second = lines(invoke("stats", "agent-1", "agent-3", "--store", store, "--json").stdout)
    assert first["kinds"] == {"user-message": 1, "assistant-message": 1, "attachment": 1}
    assert (first["attachments"], first["attachment_bytes"]) == (1, 18)
    assert (first["text_chars"], first["longest_position"], first["longest_chars"]) == (24, 2, 11)
    assert (second["events"], second["first_at"], second["longest_position"]) == (0, None, None)
    text = invoke("stats", "agent-1", "--store", store, COLUMNS="60").stdout
    assert max(map(len, text.splitlines())) <= 60


def test_stats_of_an_empty_store(invoke, empty, lines):
    (found,) = lines(invoke("stats", "--store", empty, "--json").stdout)
    assert (found["sessions"], found["largest"], found["last_at"]) == (0, None, None)
    assert invoke("stats", "--store", empty).exit_code == 0


def test_stats_names_damage(invoke, damaged, lines):
    result = invoke("stats", "agent-1", "agent-2", "--store", damaged, "--json")
    assert result.exit_code == 1
    assert result.stderr.startswith("agent-1: ")
    (found,) = lines(result.stdout)
    assert found["session_id"] == "agent-2"
    (damaged / "agent-3" / "log").write_bytes(b"no log" * 20)
    assert invoke("stats", "--store", damaged).exit_code == 1
