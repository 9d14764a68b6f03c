"""import and export of folders that hold many sessions, as older programs keep them."""

from __future__ import annotations

import os
import shutil

import pytest

import sealog


@pytest.fixture
def logs(shared, tmp_path):
    """Return a folder with two session logs of KSESSIONLOG, one of them damaged."""
    golden = shared / "golden" / "ksessionlog-0.2.1"
    folder = tmp_path / "logs"
    shutil.copytree(golden / "d_sealed", folder)
    for path in (golden / "broken" / "b_id_case").iterdir():
        shutil.copy(path, folder)
    return folder


def test_a_folder_of_session_logs_is_imported_past_what_is_damaged(invoke, logs, tmp_path, lines):
    store = tmp_path / "store"
    result = invoke("import", logs, "--store", store)
    assert result.exit_code == 2
    assert result.stdout.startswith("d-sealed: ")
    assert "b-small.session-log" in result.stderr
    assert result.stderr.count("\n") == 1
    (listed,) = lines(invoke("ls", "--json", "--store", store).stdout)
    assert (listed["session_id"], listed["sealed"]) == ("d-sealed", True)


def test_it_is_found_below_another_folder(invoke, logs, tmp_path):
    (logs / "b-small.session-log").unlink()
    (logs.parent / "chat.jsonl").write_text('{"role": "user", "text": "hello"}\n')
    result = invoke("import", logs.parent, "--store", tmp_path / "store")
    assert (result.exit_code, result.stderr) == (0, "")
    with sealog.open(tmp_path / "store", read_only=True) as opened:
        assert opened.session_ids() == ["chat", "d-sealed"]


def test_as_names_the_only_session(invoke, logs, tmp_path):
    store = tmp_path / "store"
    several = invoke("import", logs, "--as", "other", "--store", store)
    assert several.exit_code == 2
    assert several.stderr.count("\n") == 1
    (logs / "b-small.session-log").unlink()
    assert invoke("import", logs, "--as", "other", "--store", store).exit_code == 0
    assert invoke("import", logs / "d-sealed.session-log", "--as", "one", "--store", store).exit_code == 0
    with sealog.open(store, read_only=True) as opened:
        assert opened.session_ids() == ["one", "other"]


def test_it_goes_back_byte_for_byte(invoke, logs, tmp_path):
    (logs / "b-small.session-log").unlink()
    store, out = tmp_path / "store", tmp_path / "out"
    invoke("import", logs, "--store", store)
    arguments = ("export", "--into", out, "--format", "ksessionlog", "--store", store)
    assert invoke(*arguments).exit_code == 0
    assert sorted(os.listdir(out)) == sorted(os.listdir(logs))
    for path in logs.iterdir():
        assert (out / path.name).read_bytes() == path.read_bytes()
    again = invoke(*arguments)
    assert again.exit_code == 0
    assert "as it was there already" in again.stdout


def test_folders_with_a_session_of_the_same_name_are_not_mixed(invoke, logs, tmp_path):
    (logs / "b-small.session-log").unlink()
    shutil.copytree(logs, tmp_path / "more" / "logs")
    result = invoke("import", logs, tmp_path / "more", "--store", tmp_path / "store")
    assert result.exit_code == 2
    assert "would all be session 'd-sealed'" in result.stderr
    assert not (tmp_path / "store").exists()


def test_what_the_format_cannot_hold_is_said(invoke, store, tmp_path):
    result = invoke(
        "export", "agent-1", "--into", tmp_path / "out", "--format", "ksessionlog", "--store", store
    )
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    one = invoke("export", "agent-1", "--format", "ksessionlog", "--store", store)
    assert one.exit_code == 2
    assert one.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["harness-state", "acp-state"])
def test_a_state_file_that_is_none_is_one_line(invoke, tmp_path, name):
    (tmp_path / "sessions" / "6161").mkdir(parents=True)
    (tmp_path / "sessions" / "6161.json").write_text('{"no": "state"}')
    (tmp_path / "sessions" / "6161" / "state.json").write_text('{"no": "state"}')
    result = invoke("import", tmp_path, "--format", name, "--store", tmp_path / "store")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
