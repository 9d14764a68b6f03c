"""import takes files and folders, tells what is wrong, and adds only what is new."""

from __future__ import annotations

import json
import os

import pytest

import sealog


def chat(*texts: str) -> str:
    return "".join(json.dumps({"role": "user", "text": text}) + "\n" for text in texts)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "store"


def sessions(store) -> dict[str, int]:
    with sealog.open(store, read_only=True) as opened:
        return {info.session_id: info.events for info in opened.overview()}


def test_a_file_becomes_a_session(invoke, tmp_path, target):
    (tmp_path / "chat.jsonl").write_text(chat("a", "b"))
    result = invoke("import", tmp_path / "chat.jsonl", "--store", target)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "chat: 2 records of jsonl, 2 added\n"
    assert sessions(target) == {"chat": 2}


def test_a_second_time_only_what_is_new(invoke, tmp_path, target, lines):
    source = tmp_path / "chat.jsonl"
    source.write_text(chat("a"))
    invoke("import", source, "--store", target)
    assert "nothing new, 1 known" in invoke("import", source, "--store", target).stdout
    source.write_text(chat("a", "b"))
    (report,) = lines(invoke("import", source, "--store", target, "--json").stdout)
    assert (report["added"], report["known"], report["path"]) == (1, 1, str(source))


def test_a_changed_record_is_a_conflict(invoke, tmp_path, target):
    source = tmp_path / "chat.jsonl"
    source.write_text(chat("a", "b"))
    invoke("import", source, "--store", target)
    source.write_text(chat("a", "B"))
    result = invoke("import", source, "--store", target)
    assert result.exit_code == 3
    assert "1 in conflict" in result.stdout
    assert result.stderr == f"{source}:2: record 1 has changed since it was imported\n"


def test_a_bad_line_is_kept_and_reported(invoke, tmp_path, target):
    source = tmp_path / "chat.jsonl"
    source.write_text(chat("a") + "{nonsense\n" + chat("b"))
    result = invoke("import", source, "--store", target)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"{source}:2: ")
    assert sessions(target) == {"chat": 3}


def test_many_problems_are_counted(invoke, tmp_path, target):
    source = tmp_path / "chat.jsonl"
    source.write_text(chat(*"abcdefghijklmnopqrstuvwxyz") + "{nonsense\n" * 25)
    result = invoke("import", source, "--store", target)
    assert result.stderr.count("\n") == 11
    assert "15 more problems; --json names them" in result.stderr


def test_as_names_the_session_of_one_file(invoke, tmp_path, target):
    (tmp_path / "a b.jsonl").write_text(chat("a"))
    refused = invoke("import", tmp_path / "a b.jsonl", "--store", target)
    assert refused.exit_code == 2
    assert "choose one: --as" in refused.stderr
    assert invoke("import", tmp_path / "a b.jsonl", "--as", "ab", "--store", target).exit_code == 0
    assert sessions(target) == {"ab": 1}
    (tmp_path / "other.jsonl").write_text(chat("b"))
    assert invoke("import", tmp_path, "--as", "ab", "--store", target).exit_code == 2


def test_format_is_told_or_given(invoke, tmp_path, target):
    source = tmp_path / "notes"
    source.write_text("plain text, no JSON\n")
    unknown = invoke("import", source, "--store", target)
    assert unknown.exit_code == 2
    assert "name one with --format" in unknown.stderr
    assert not target.exists()
    assert invoke("import", source, "--store", target, "--format", "nonsense").exit_code == 2
    given = invoke("import", source, "--store", target, "--format", "jsonl")
    assert given.exit_code == 3
    assert sessions(target) == {"notes": 1}


def test_a_folder_is_searched_and_other_files_are_passed_over(invoke, tmp_path, target):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "one.jsonl").write_text(chat("a"))
    (folder / "deep" / "two.jsonl").write_text(chat("b"))
    (folder / ".hidden" / "three.jsonl").write_text(chat("c"))
    (folder / "README").write_text("no transcript\n")
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder)
    result = invoke("import", folder, "--store", target)
    assert result.exit_code == 0
    assert sessions(target) == {"one": 1, "two": 1}
    assert result.stderr == f"{folder / 'README'}: passed over, no format fits\n"


def test_a_folder_with_nothing_in_it_makes_no_store(invoke, tmp_path, target):
    (tmp_path / "in").mkdir()
    result = invoke("import", tmp_path / "in", "--store", target)
    assert result.exit_code == 3
    assert result.stderr == "sealog: there is nothing to import\n"
    assert not target.exists()


def test_two_files_of_one_name_are_refused_and_the_others_are_not(invoke, tmp_path, target):
    for place in ("a", "b"):
        (tmp_path / "in" / place).mkdir(parents=True)
        (tmp_path / "in" / place / "chat.jsonl").write_text(chat(place))
    (tmp_path / "in" / "other.jsonl").write_text(chat("x"))
    result = invoke("import", tmp_path / "in", "--store", target)
    assert result.exit_code == 2
    assert "would all be session 'chat'" in result.stderr
    assert sessions(target) == {"other": 1}
    same = invoke(
        "import", tmp_path / "in" / "other.jsonl", tmp_path / "in" / "other.jsonl", "--store", target
    )
    assert same.exit_code == 0
    assert same.stdout.count("\n") == 1


@pytest.mark.parametrize("make", [lambda path: None, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_is_one_line(invoke, tmp_path, target, make):
    make(tmp_path / "thing")
    result = invoke("import", tmp_path / "thing", "--store", target)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not target.exists()


def test_a_session_of_somebody_else_is_left_alone(invoke, tmp_path, target):
    with sealog.open(target) as opened:
        opened.create_session("chat").append("note", "mine")
    (tmp_path / "chat.jsonl").write_text(chat("a"))
    result = invoke("import", tmp_path / "chat.jsonl", "--store", target)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert sessions(target) == {"chat": 1}


def test_subagents_go_with_their_main_file(invoke, tmp_path, target, lines):
    record = {"type": "user", "sessionId": "s-1", "message": {"role": "user", "content": "x"}}
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "agent-1.jsonl").write_text(json.dumps(record) + "\n")
    (folder / "main.jsonl").write_text(json.dumps(record) + "\n")
    (report,) = lines(invoke("import", folder, "--store", target, "--json").stdout)
    assert [related["session_id"] for related in report["related"]] == ["main--agent-1"]
    assert sessions(target) == {"main": 1, "main--agent-1": 1}


def test_all_samples_are_imported_and_exported_again(invoke, shared, tmp_path, target):
    samples = shared / "samples"
    assert invoke("import", samples, "--store", target).exit_code == 0
    assert invoke("import", samples, "--store", target).stdout.count("nothing new") == len(sessions(target))
    assert invoke("verify", "--store", target).exit_code == 0
    assert invoke("export", "--into", tmp_path / "out", "--store", target).exit_code == 0
    assert len(os.listdir(tmp_path / "out")) == len(sessions(target))
    given = (samples / "claude-code" / "spotter_short.jsonl").read_text().splitlines()
    back = (tmp_path / "out" / "spotter_short.jsonl").read_text().splitlines()
    assert list(map(json.loads, back)) == list(map(json.loads, given))
    for kind in ("markdown", "html"):
        assert invoke("export", "--into", tmp_path / kind, "--format", kind, "--store", target).exit_code == 0
