"""quarantine lists, shows and removes what recovery has cut off, and touches nothing else."""

from __future__ import annotations

import base64

import pytest

import sealog


@pytest.fixture
def kept(torn):
    """Return the store after recovery has cut the torn end of agent-1 off."""
    with sealog.open(torn) as opened:
        opened.recover_all()
    return torn


@pytest.fixture
def name(kept):
    (found,) = (kept / "agent-1" / "quarantine").iterdir()
    return found.name


def test_ls_lists_what_was_cut_off(invoke, kept, name, lines):
    (found,) = lines(invoke("quarantine", "ls", "--store", kept, "--json").stdout)
    assert found["cut_at"] > 0
    assert (found["session_id"], found["name"], found["size_bytes"]) == ("agent-1", name, 19)
    assert f"{found['offset']}-19-" in name
    assert name in invoke("quarantine", "ls", "agent-1", "--store", kept).stdout
    assert invoke("quarantine", "ls", "agent-2", "--store", kept).output == ""


def test_show_prints_bytes_as_hexadecimal(invoke, kept, name, lines):
    arguments = ("quarantine", "show", "agent-1", name, "--store", kept)
    first, second = invoke(*arguments).stdout.splitlines()
    assert first.endswith("half of a fr")
    assert first.startswith("00000000  ")
    assert second.split() == ["00000010", "61", "6d", "65", "ame"]
    (found,) = lines(invoke(*arguments, "--json").stdout)
    data = base64.b64decode(found["bytes"]["base64"])
    assert data.endswith(b"half of a frame")
    assert invoke(*arguments, "--raw").stdout_bytes == data


@pytest.mark.parametrize("bad", ["../lock", "lock", "0-0-0", "/etc/passwd", "", "1-2-0123456789abcdef"])
@pytest.mark.parametrize("command", ["show", "rm"])
def test_only_files_of_quarantine_are_taken(invoke, kept, command, bad):
    result = invoke("quarantine", command, "agent-1", "--store", kept, "--", bad)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert (kept / "agent-1" / "lock").exists()


def test_rm_removes_what_is_named(invoke, kept, name):
    assert invoke("quarantine", "rm", "agent-1", "--store", kept).exit_code == 2
    assert invoke("quarantine", "rm", "agent-1", name, "--all", "--store", kept).exit_code == 2
    result = invoke("quarantine", "rm", "agent-1", name, "--store", kept)
    assert (result.exit_code, result.stdout) == (0, "agent-1: 1 file removed\n")
    assert list((kept / "agent-1" / "quarantine").iterdir()) == []
    assert invoke("verify", "--store", kept).exit_code == 0


def test_rm_all_leaves_what_is_not_ours(invoke, kept, name):
    (kept / "agent-1" / "quarantine" / "notes.txt").write_text("mine")
    assert invoke("quarantine", "rm", "agent-1", "--all", "--store", kept).exit_code == 0
    assert [path.name for path in (kept / "agent-1" / "quarantine").iterdir()] == ["notes.txt"]


def test_rm_waits_for_no_owner(run, kept, name):
    with sealog.open(kept) as opened, opened.open_session("agent-1"):
        done = run("quarantine", "rm", "agent-1", name, "--store", kept)
    assert done.returncode == 2
    assert "is owned by" in done.stderr
    assert (kept / "agent-1" / "quarantine" / name).exists()


def test_a_session_without_quarantine_is_one_line(invoke, store):
    result = invoke("quarantine", "show", "agent-1", "1-2-0123456789abcdef", "--store", store)
    assert result.exit_code == 2
    assert result.stderr == "sealog: session 'agent-1' has nothing in quarantine\n"
    assert invoke("quarantine", "ls", "nosuch", "--store", store).exit_code == 2
