"""attachments lists files and copies them out, never elsewhere and never over something."""

from __future__ import annotations

import os

import pytest

import sealog

NAMES = [
    "../../escape.txt",
    "/etc/passwd",
    "..",
    ".",
    "...",
    "a/b/../../../c.txt",
    "..\\..\\windows.txt",
    "C:\\temp\\x.txt",
    "nul\x00byte",
    "line\nbreak.txt",
    "\x1b[31mred.txt",
    "\u202egpj.exe",
    "-rf",
    "~",
    "$(touch owned)",
    "x" * 300 + ".png",
    "ä" * 200 + ".txt",
    "y" * 10 + "." + "z" * 200,
    ".hidden",
    "same.txt",
    "same.txt",
    "CON",
    "con:stream",
]


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / "store"
    with sealog.open(path) as opened:
        session = opened.create_session("s")
        for number, name in enumerate(NAMES):
            session.attach(f"content {number}".encode(), file_name=name)
    return path


def test_attachments_lists_files(invoke, store, lines):
    output = invoke("attachments", "agent-1", "--store", store).stdout
    assert output.splitlines()[1].split()[:5] == ["shot.png", "2", "image/png", "18", "B"]
    (found,) = lines(invoke("attachments", "agent-1", "--store", store, "--json").stdout)
    assert (found["file_name"], found["size_bytes"], found["position"]) == ("shot.png", 18, 2)


def test_a_session_without_files_prints_nothing(invoke, store):
    result = invoke("attachments", "agent-2", "--store", store)
    assert (result.exit_code, result.output) == (0, "")


def test_extract_copies_files(invoke, store, tmp_path):
    result = invoke("attachments", "agent-1", "--store", store, "--extract", tmp_path / "new" / "out")
    assert result.exit_code == 0
    path = tmp_path / "new" / "out" / "2-shot.png"
    assert result.stdout == f"{path}\n"
    assert path.read_bytes() == b"bytes of a picture"


def test_extract_replaces_nothing(invoke, store, tmp_path):
    (tmp_path / "2-shot.png").write_bytes(b"mine")
    result = invoke("attachments", "agent-1", "--store", store, "--extract", tmp_path)
    assert result.exit_code == 3
    assert "is there already" in result.stderr
    assert (tmp_path / "2-shot.png").read_bytes() == b"mine"


def test_extract_follows_no_link(invoke, store, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "2-shot.png").symlink_to(tmp_path / "target")
    assert invoke("attachments", "agent-1", "--store", store, "--extract", folder).exit_code == 3
    assert not (tmp_path / "target").exists()


def test_extract_stays_in_its_folder_whatever_the_names_are(invoke, hostile, tmp_path):
    folder = tmp_path / "deep" / "er" / "out"
    folder.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if folder not in path.parents}
    result = invoke("attachments", "s", "--store", hostile, "--extract", folder)
    assert result.exit_code == 0
    assert {path for path in tmp_path.rglob("*") if folder not in path.parents} == before
    found = sorted(os.listdir(folder), key=lambda name: int(name.split("-")[0]))
    assert len(found) == len(NAMES)
    for number, name in enumerate(found):
        assert (folder / name).read_bytes() == f"content {number}".encode()
        assert name.startswith(f"{number}-")
        assert len(name.encode()) < 200
        assert name.isprintable()
    assert found[0] == "0-escape.txt"
    assert found[1] == "1-passwd"
    assert found[2] == "2-file"
    assert found[15].endswith(".png")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_name_steers_the_terminal(invoke, hostile, tmp_path, options):
    for more in ((), ("--extract", tmp_path / "out")):
        output = invoke("attachments", "s", "--store", hostile, *options, *more).output
        assert not {"\x1b", "\u202e", "\x00"} & set(output)


def test_a_damaged_file_is_not_kept_and_the_others_are(invoke, store, tmp_path):
    with sealog.open(store) as opened:
        opened.open_session("agent-1").attach(b"second", file_name="b")
    (store / "agent-1" / "attachments" / "2").write_bytes(b"bytes of a Picture")
    result = invoke("attachments", "agent-1", "--store", store, "--extract", tmp_path / "out")
    assert result.exit_code == 1
    assert os.listdir(tmp_path / "out") == ["3-b"]
    assert result.stderr.count("\n") == 1


def test_a_file_in_the_way_of_the_folder_is_one_line(invoke, store, tmp_path):
    (tmp_path / "file").write_text("x")
    result = invoke("attachments", "agent-1", "--store", store, "--extract", tmp_path / "file")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
