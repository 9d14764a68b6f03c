"""What holds for all commands: the extra, exit codes, one-line errors, a reader that went away."""

from __future__ import annotations

import importlib.metadata
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import sealog
from sealog.cli.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

READING = (
    ("ls",),
    ("ls", "--sort", "size"),
    ("show", "agent-1"),
    ("show", "agent-1", "--raw"),
    ("tail", "agent-1"),
    ("grep", "."),
    ("stats",),
    ("stats", "agent-1"),
    ("attachments", "agent-1"),
    ("verify",),
    ("verify", "agent-1"),
    ("quarantine", "ls"),
    ("export", "agent-1"),
    ("repair", "agent-1", "--into", os.devnull + "/copy"),
)
CHANGING = (("seal", "agent-1"), ("rm", "agent-1"), ("quarantine", "rm", "agent-1", "--all"))
JSON = [command for command in READING if command[0] not in ("export", "repair") and "--raw" not in command]


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, encoding="utf-8", check=False
    )


def test_importing_the_library_imports_nothing_of_the_extra():
    done = python("import sys, sealog; print({'typer', 'rich', 'click'} & set(sys.modules))")
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_the_command_says_what_to_install(missing):
    done = python(f"import sys; sys.modules[{missing!r}] = None; import sealog.cli; sealog.cli.main()")
    assert done.returncode == 2
    assert done.stderr == "the sealog command needs its extra: pip install 'sealog[cli]'\n"
    assert not done.stdout


def test_another_missing_module_is_not_blamed_on_the_extra():
    done = python("import sys; sys.modules['sealog.cli.app'] = None; import sealog.cli; sealog.cli.main()")
    assert "ModuleNotFoundError" in done.stderr


def test_the_console_script_is_main():
    try:
        scripts = importlib.metadata.distribution("sealog").entry_points
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("sealog is not installed, only importable")
    assert scripts["sealog"].value == "sealog.cli:main"


def test_help_fits_60_columns_and_names_every_command(run):
    done = run("--help", COLUMNS="60")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 60
    for name in COMMANDS:
        assert f" {name} " in done.stdout


def test_version(invoke):
    assert invoke("--version").stdout == f"sealog {sealog.__version__}\n"


@pytest.mark.parametrize("arguments", [("nonsense",), ("ls",), ("ls", "--nonsense"), ("show",)])
def test_a_wrong_call_exits_with_2(invoke, arguments):
    assert invoke(*arguments).exit_code == 2


@pytest.mark.parametrize("command", [*READING, *CHANGING])
def test_a_missing_store_is_one_line_and_is_not_made(invoke, tmp_path, command):
    result = invoke(*command, "--store", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("sealog: no sealog store at ")
    assert result.stderr.count("\n") == 1
    assert not result.stdout
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", [command for command in READING if command[0] != "repair"])
def test_reading_changes_nothing(invoke, store, command):
    def tree() -> dict[str, tuple[int, int]]:
        return {
            str(path): (found.st_mtime_ns, found.st_size)
            for path in store.rglob("*")
            if (found := path.stat())
        }

    before = tree()
    assert invoke(*command, "--store", store).exit_code == 0
    assert tree() == before


def test_a_folder_that_is_no_store_is_left_alone(invoke, tmp_path):
    result = invoke("ls", "--store", tmp_path)
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_system_is_one_line(run, tmp_path):
    done = run("ls", "--store", tmp_path / ("x" * 300))
    assert done.returncode == 2
    assert done.stderr.startswith("sealog: ")
    assert done.stderr.count("\n") == 1


def test_a_path_cannot_steer_the_terminal(run, tmp_path):
    done = run("ls", "--store", tmp_path / "\x1b[31mred\nline")
    assert done.returncode == 2
    assert "\\x1b[31mred\\nline" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_store_comes_from_the_environment(invoke, store):
    assert "agent-1" in invoke("ls", SEALOG_STORE=str(store)).stdout


def test_an_id_like_an_option_goes_after_two_dashes(invoke, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session("--help").append("user-message", "odd name")
    arguments = ("--store", tmp_path / "store", "--", "--help")
    assert "odd name" in invoke("show", *arguments).stdout
    assert "--help: ok, 1 event" in invoke("verify", *arguments).stdout


@pytest.mark.parametrize("session", ["../agent-1", "a b", "agent-9", "\x1b[31m", ""])
@pytest.mark.parametrize(
    "command",
    ["show", "tail", "stats", "attachments", "verify", "seal", "rm", "export", "quarantine ls"],
)
def test_an_unknown_session_is_one_line(invoke, store, command, session):
    result = invoke(*command.split(), "--store", store, "--", session)
    assert result.exit_code == 2
    assert result.stderr.startswith("sealog: ")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.output


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_has_enough_is_no_error(tmp_path, options):
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session("long").append_many(
            sealog.Event("user-message", f"event {number} " + "x" * 500) for number in range(2_000)
        )
    with subprocess.Popen(
        [sys.executable, "-m", "sealog.cli", "show", "long", "--store", tmp_path / "store", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_verify_finds_damage_though_nobody_reads_what_it_prints(damaged, options):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sealog.cli", "verify", "--store", damaged, *options],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def coloured(path: Path) -> dict[str, str]:
    return {"FORCE_COLOR": "1", "TERM": "xterm-256color", "SEALOG_STORE": str(path)}


COLOURED = (("ls",), ("show", "agent-1"), ("grep", "h"), ("stats",), ("verify",), ("attachments", "agent-1"))


@pytest.mark.parametrize("command", COLOURED)
def test_no_color_is_honoured(invoke, store, command):
    assert "\x1b[" in invoke(*command, **coloured(store)).stdout
    assert "\x1b" not in invoke(*command, **coloured(store), NO_COLOR="1").stdout


@pytest.mark.parametrize("command", COLOURED)
def test_what_is_not_a_terminal_gets_no_colour_and_no_progress(run, store, command):
    done = run(*command, "--store", store)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("command", JSON)
def test_json_is_one_object_a_line(invoke, store, lines, command):
    result = invoke(*command, "--json", "--store", store)
    assert result.exit_code == 0
    assert all(isinstance(line, dict) for line in lines(result.stdout))


@pytest.mark.parametrize("command", READING)
def test_every_command_copes_with_damage_in_one_line_each(invoke, damaged, command):
    (damaged / "agent-3" / "log").write_bytes(b"no log at all" * 10)
    result = invoke(*command, "--store", damaged, COLUMNS="60")
    assert result.exit_code in (0, 1, 2)
    assert isinstance(result.exception, SystemExit) or result.exception is None
    assert result.stderr.count("\n") <= 2


@pytest.mark.parametrize("command", [command for command in READING if "agent-1" not in command])
def test_every_command_copes_with_an_empty_store(invoke, empty, command):
    result = invoke(*command, "--store", empty)
    assert result.exit_code == (3 if command[0] == "grep" else 0)


@pytest.mark.parametrize("command", [command for command in READING if command[0] != "repair"])
def test_reading_a_store_that_is_being_written(run, store, command):
    with sealog.open(store) as opened, opened.open_session("agent-1") as session:
        session.append("note", "the latest")
        done = run(*command, "--store", store)
        assert (done.returncode, done.stderr) == (0, "")
        session.append("note", "and on")
    with sealog.open(store, read_only=True) as opened:
        assert len(opened.open_session("agent-1")) == 5


@pytest.mark.parametrize(
    "command",
    [("ls",), ("show", "agent-1", "--raw"), ("grep", "."), ("attachments", "agent-1"), ("export", "agent-1")],
)
def test_nobody_reads_from_the_start(store, command):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sealog.cli", *command, "--store", store],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("ls",),
            "sealog ls: no store given: use --store DIR, or set SEALOG_STORE; try 'sealog ls --help'\n",
        ),
        (("show",), "sealog show: missing argument 'SESSION'; try 'sealog show --help'\n"),
        (("lss",), "sealog: no such command 'lss'"),
        (("show", "-x"), "no such option: -x; an id that starts with '-' goes after '--'; try"),
    ],
)
def test_a_wrong_call_is_one_line_that_helps(run, arguments, said):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def watched(store: Path, *, all_of_it: bool) -> bytes:
    """Return what a terminal gets: standard error only, or all of it."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "sealog.cli", "verify", "--store", store]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    output = theirs if all_of_it else subprocess.DEVNULL
    with subprocess.Popen(command, stdout=output, stderr=theirs, env=environment) as process:
        os.close(theirs)
        found = b""
        try:
            while data := os.read(ours, 4096):
                found += data
        except OSError:  # how Linux says that the other side was closed
            pass
        finally:
            os.close(ours)
        assert process.wait() == 0
    return found


def test_progress_is_shown_where_somebody_watches_and_nothing_else_is(store):
    assert b"verifying" in watched(store, all_of_it=False)
    shown = watched(store, all_of_it=True)
    assert b"verifying" not in shown
    assert b"agent-1" in shown


def test_an_output_that_cannot_encode_a_character_gets_an_escape(run, tmp_path):
    with sealog.open(tmp_path / "store") as opened:
        opened.create_session("s").append("user-message", "ä→😀")
    arguments = ("show", "s", "--store", tmp_path / "store")
    text = run(*arguments, PYTHONIOENCODING="ascii")
    assert "\\xe4\\u2192\\U0001f600" in text.stdout
    json = run(*arguments, "--json", PYTHONIOENCODING="ascii")
    assert '"text": "\\u00e4\\u2192\\ud83d\\ude00"' in json.stdout
