"""verify proves sessions, and names what is wrong."""

from __future__ import annotations

import os

import pytest


def test_verify_all_sessions(invoke, store):
    result = invoke("verify", "--store", store)
    assert result.exit_code == 0
    assert [line.split(",")[:2] for line in result.stdout.splitlines()] == [
        ["agent-1: ok", " 3 events"],
        ["agent-2: ok", " 1 event"],
        ["agent-3: ok", " 0 events"],
    ]


def test_verify_some_sessions(invoke, lines, store):
    result = invoke("verify", "--store", store, "--json", "agent-3", "agent-2")
    assert [(line["session_id"], line["ok"]) for line in lines(result.stdout)] == [
        ("agent-3", True),
        ("agent-2", True),
    ]


def test_verify_of_an_empty_store_is_silent(invoke, empty):
    result = invoke("verify", "--store", empty)
    assert (result.exit_code, result.output) == (0, "")


def test_verify_names_the_damage_and_goes_on(invoke, lines, damaged):
    result = invoke("verify", "--store", damaged)
    assert result.exit_code == 1
    assert "agent-1: DAMAGED" in result.stdout
    assert "agent-3: ok" in result.stdout
    first = lines(invoke("verify", "--store", damaged, "--json").stdout)[0]
    assert first["ok"] is False
    assert first["problems"]


def test_verify_finds_a_changed_attachment(invoke, store):
    (store / "agent-1" / "attachments" / "2").write_bytes(b"bytes of a pictures")
    result = invoke("verify", "agent-1", "--store", store)
    assert result.exit_code == 1
    assert "attachments/2" in result.stdout


def test_verify_finds_a_missing_attachment(invoke, store):
    (store / "agent-1" / "attachments" / "2").unlink()
    assert invoke("verify", "agent-1", "--store", store).exit_code == 1


def test_verify_shows_a_torn_tail_as_no_damage(invoke, torn):
    result = invoke("verify", "agent-1", "--store", torn)
    assert result.exit_code == 0
    assert "19 bytes of an interrupted write" in result.stdout


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_verify_goes_on_past_what_it_may_not_read(invoke, store):
    (store / "agent-1" / "log").chmod(0)
    result = invoke("verify", "--store", store)
    assert result.exit_code == 2
    assert "agent-2: ok" in result.stdout
