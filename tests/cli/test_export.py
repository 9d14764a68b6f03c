"""export writes files or to standard output, and replaces nothing unless told to."""

from __future__ import annotations

import json
import os

import pytest


def test_export_to_standard_output(invoke, store):
    result = invoke("export", "agent-2", "--store", store)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["text"] == "done"


@pytest.mark.parametrize(("name", "start"), [("markdown", "# Session agent-1"), ("html", "<!")])
def test_export_for_people(invoke, store, tmp_path, name, start):
    output = tmp_path / "page"
    result = invoke("export", "agent-1", "--format", name, "-o", output, "--store", store)
    assert result.exit_code == 0
    assert result.stdout.endswith(f"of {name} in {output}\n")
    assert output.read_text().lower().startswith(start.lower())


def test_export_replaces_a_file_with_force_only(invoke, store, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("mine")
    arguments = ("export", "agent-2", "-o", output, "--store", store)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stderr == f"sealog: {output} is there already; --force replaces it\n"
    assert output.read_text() == "mine"
    assert invoke(*arguments, "--force").exit_code == 0
    assert "done" in output.read_text()


def test_export_of_all_sessions_goes_on_past_what_cannot_be_read(invoke, damaged, tmp_path, lines):
    result = invoke("export", "--into", tmp_path / "out", "--store", damaged, "--json")
    assert result.exit_code == 1
    assert [report["session_id"] for report in lines(result.stdout)] == ["agent-2", "agent-3"]
    assert result.stderr.startswith("sealog: agent-1: ")
    assert sorted(os.listdir(tmp_path / "out")) == ["agent-2.jsonl", "agent-3.jsonl"]
    again = invoke("export", "agent-2", "--into", tmp_path / "out", "--store", damaged)
    assert again.exit_code == 2
    assert "--force replaces it" in again.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("agent-1", "agent-2"),
        ("agent-1", "--json"),
        ("agent-1", "--format", "nonsense"),
        ("nosuch",),
        ("agent-1", "-o", "x", "--into", "y"),
        ("agent-1", "--format", "swe-agent"),
    ],
)
def test_a_wrong_call_is_one_line(invoke, store, arguments):
    result = invoke("export", *arguments, "--store", store)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.count("\n") == 1


def test_what_a_format_has_no_place_for_is_counted(invoke, tmp_path, store):
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "text": "hello"}\n')
    invoke("import", tmp_path / "chat.jsonl", "--as", "agent-1", "--store", store)
    result = invoke("export", "agent-1", "--format", "jsonl", "--store", store)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 4
