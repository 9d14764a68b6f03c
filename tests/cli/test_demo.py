"""The demo: it runs, it finds nothing lost where nothing is, and it finds every planted loss."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import sealog
from sealog.cli.demo import command as demo_command
from sealog.cli.demo.check import Acknowledged, compare, parse_acknowledgements
from sealog.cli.demo.run import DemoError, Settings, Watcher, run_demo
from sealog.cli.demo.writer import SessionPlan, digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = ("--seconds", "0.5", "--json")


def settings(store: Path, sessions: int = 8) -> Settings:
    plans = [SessionPlan(f"agent-{number}") for number in range(sessions)]
    return Settings(str(store), plans, 500, seconds=0.5, threads=4, floor_seconds=0.05)


# -- the whole, as a user runs it


def test_the_demo_finds_everything_and_leaves_its_store(run, tmp_path):
    done = run("demo", *SHORT)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["ok"] is True
    assert result["sessions"] == 64
    assert result["lost"] == 0
    assert result["found"] == result["acknowledged"] > 0
    assert result["attachments_found"] == result["attachments"]
    assert result["extra"] <= 16
    assert result["floor_per_s"] > 0
    assert result["store"] == str(tmp_path / "cwd" / "sealog-demo-1")
    assert run("verify", "--store", result["store"]).returncode == 0
    listed = run("ls", "--json", "--store", result["store"]).stdout.splitlines()
    assert sum(json.loads(line)["events"] for line in listed) == result["found"] + result["extra"]


@pytest.mark.slow
def test_the_demo_runs_every_transcript_of_the_samples(run, shared):
    folder = shared / "samples" / "claude-code"
    done = run("demo", *SHORT, "--input", folder)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["lost"] == 0
    assert result["found"] == result["acknowledged"] > 0
    with sealog.open(result["store"], read_only=True) as store:
        sources = {store.describe(name).labels["transcript"] for name in store.session_ids()}
    assert sources == {path.name for path in folder.rglob("*.jsonl")}


@pytest.mark.slow
def test_the_demo_runs_lines_that_are_no_records(run, tmp_path):
    (tmp_path / "odd name!.jsonl").write_bytes(
        b'not JSON \x1b[31m\n{"n": 1e999}\n{"n": 99999999999999999999999}\n\xff\xfe\n'
        + b"[" * 5_000
        + b"\n\n"
    )
    (tmp_path / "empty.jsonl").write_bytes(b"\n\n")
    done = run("demo", *SHORT, "--input", tmp_path / "odd name!.jsonl", "--input", tmp_path / "empty.jsonl")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["lost"] == 0
    shown = run("show", "odd-name-00", "--store", result["store"])
    assert "\x1b" not in shown.stdout


@pytest.mark.slow
def test_the_table_fits_60_columns(run, tmp_path):
    (tmp_path / "cwd" / "sealog-demo-1").mkdir()
    done = run("demo", "--seconds", "0.5", COLUMNS="60")
    assert done.returncode == 0
    assert done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 60
    for row in ("sessions", "lost", "torn tails cut", "recovery", "ratio", "Nothing acknowledged was lost."):
        assert row in done.stdout
    assert done.stdout.endswith("python -m sealog.cli ls --store sealog-demo-2\n")
    assert list((tmp_path / "cwd" / "sealog-demo-1").iterdir()) == []


@pytest.mark.slow
def test_modules_of_the_current_folder_do_not_get_in_the_way(tmp_path):
    """The processes that the demo starts import what it imports, whatever lies around where it is called."""
    for name in ("msgspec", "json", "sealog", "xxhash"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sealog.cli", "demo", *SHORT, "--store", "new/store"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new" / "store" / "agent-00").is_dir()


# -- what it refuses


def test_a_folder_with_something_in_it_is_never_used(invoke, store):
    before = sorted(store.rglob("*"))
    result = invoke("demo", "--store", store, COLUMNS="500")
    assert result.exit_code == 2
    assert "is there already" in result.output
    assert sorted(store.rglob("*")) == before


def test_a_file_is_not_used_as_a_store(invoke, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert invoke("demo", "--store", tmp_path / "file").exit_code == 2
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("content", [None, b"", b"\n \n"])
def test_an_input_without_lines_is_a_wrong_call(invoke, tmp_path, content):
    if content is not None:
        (tmp_path / "t.jsonl").write_bytes(content)
    result = invoke("demo", "--store", tmp_path / "store", "--input", tmp_path)
    assert result.exit_code == 2
    assert not (tmp_path / "store").exists()


def test_a_missing_input_is_a_wrong_call(invoke, tmp_path):
    assert invoke("demo", "--input", tmp_path / "nothing.jsonl").exit_code == 2


def test_a_writer_that_cannot_start_is_an_error_and_not_a_result(tmp_path):
    wrong = Settings(str(tmp_path / "store"), [SessionPlan("not an id")], 10, floor_seconds=0.01)
    with pytest.raises(DemoError, match=r"did not start: .*InvalidSessionIdError"):
        run_demo(wrong, Watcher())


def test_a_demo_that_cannot_run_exits_with_2(invoke, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise DemoError("no\x1b")

    monkeypatch.setattr(demo_command, "run_demo", refuse)
    result = invoke("demo", "--store", tmp_path / "store")
    assert (result.exit_code, result.output) == (2, "sealog: no\\x1b\n")


def test_progress_is_shown_on_a_terminal_only(invoke, tmp_path, monkeypatch):
    def begin(_: Settings, watcher: Watcher) -> None:
        watcher.advance(1)
        watcher.phase("first", 0)
        watcher.phase("second", 2)
        watcher.advance(1)
        raise DemoError("enough")

    monkeypatch.setattr(demo_command, "run_demo", begin)
    watched = invoke("demo", "--store", tmp_path / "store", FORCE_COLOR="1", TERM="xterm", COLUMNS="60")
    assert "second" in watched.stderr
    assert watched.stderr.endswith("sealog: enough\n")
    assert invoke("demo", "--store", tmp_path / "store").output == "sealog: enough\n"


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind(tmp_path):
    """Ctrl-C while the writer appends: the writer is gone too, or its sessions would still be locked."""
    store = tmp_path / "store"
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from sealog.cli import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "demo", "--seconds", "60", "--store", store],
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        shown = b""
        while b"appending" not in shown:
            shown += process.stderr.read1(4096)
        process.send_signal(signal.SIGINT)
        rest = process.communicate()[1]
    assert process.returncode == 130
    assert b"Traceback" not in shown + rest
    with sealog.open(store, create=False) as opened:
        statuses = {report.status for report in opened.recover_all()}
    assert statuses <= {"clean", "recovered"}


# -- planted losses


def truncate(session: Path) -> None:
    log = session / "log"
    body = log.read_bytes().rstrip(b"\0")
    log.write_bytes(body[: len(body) // 2])


def alter(session: Path) -> None:
    log = session / "log"
    log.write_bytes(log.read_bytes().replace(b"src/", b"SRC/"))


def remove(session: Path) -> None:
    shutil.rmtree(session)


def forget(session: Path) -> None:
    """Put an intact but shorter session in its place, as a backup would."""
    store, name = session.parent, session.name
    shutil.rmtree(session)
    with sealog.open(store) as opened:
        opened.create_session(name).append("user-message", "the only one")


@pytest.mark.parametrize("plant", [truncate, alter, remove, forget])
def test_a_planted_loss_is_found(tmp_path, invoke, monkeypatch, plant: Callable[[Path], None]):
    store = tmp_path / "store"
    real = run_demo

    def run_with_loss(_: Settings, watcher: Watcher) -> Any:
        # The last sessions stay unsealed.
        return real(settings(store), watcher, lambda: plant(store / "agent-7"))

    monkeypatch.setattr(demo_command, "run_demo", run_with_loss)
    result = invoke("demo", "--store", store, "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["lost"] > 0
    assert any("agent-7" in problem for problem in found["problems"])
    assert not any("agent-6" in problem for problem in found["problems"])


def test_the_table_says_that_something_is_lost(tmp_path, invoke, monkeypatch):
    store = tmp_path / "store"
    real = run_demo
    monkeypatch.setattr(
        demo_command,
        "run_demo",
        lambda _, watcher: real(settings(store), watcher, lambda: remove(store / "agent-7")),
    )
    result = invoke("demo", "--store", store)
    assert result.exit_code == 1
    assert "agent-7: " in result.stdout
    assert "This must not happen" in result.stdout
    assert "Nothing acknowledged was lost" not in result.stdout


# -- comparing


@pytest.fixture
def session(tmp_path: Path) -> tuple[str, Acknowledged]:
    """Return a store with one sealed session, and what it acknowledged."""
    path = tmp_path / "compared"
    with sealog.open(path) as store:
        made = store.create_session("s")
        made.append("user-message", "zero", {"b": 1, "a": [None]})
        made.append("user-message", "one")
        made.attach(b"body", file_name="f")
        made.seal()
        digests = {0: digest(made[0]), 1: digest(made[1])}
    return str(path), Acknowledged(digests, {2: hashlib.sha256(b"body").hexdigest()}, 3)


def test_all_is_found(session):
    path, lane = session
    result = compare(path, [(SessionPlan("s"), lane)], 0)
    assert (result.acknowledged, result.found, result.lost) == (3, 3, 0)
    assert (result.attachments, result.attachments_found, result.extra, result.sealed) == (1, 1, 0, 1)
    assert (result.faults, result.problems) == (0, [])


def test_an_event_behind_the_end_is_lost(session):
    path, lane = session
    lane.digests[3] = lane.digests[0]
    result = compare(path, [(SessionPlan("s"), lane)], 0)
    assert (result.lost, result.faults) == (1, 1)
    assert result.problems == ["s: 1 of 4 events lost"]


def test_two_events_that_changed_places_are_lost(session):
    path, lane = session
    lane.digests[0], lane.digests[1] = lane.digests[1], lane.digests[0]
    assert compare(path, [(SessionPlan("s"), lane)], 0).lost == 2


def test_other_bytes_in_a_file_are_lost(session):
    path, lane = session
    lane.files[2] = hashlib.sha256(b"other").hexdigest()
    result = compare(path, [(SessionPlan("s"), lane)], 0)
    assert (result.lost, result.attachments_found) == (1, 0)


def test_an_event_where_a_file_should_be_is_lost(session):
    path, lane = session
    lane.files[1] = lane.files[2]
    del lane.digests[1]
    assert compare(path, [(SessionPlan("s"), lane)], 0).lost == 1


def test_a_damaged_seal_is_a_fault(session):
    path, lane = session
    lane.sealed_at = 2
    assert compare(path, [(SessionPlan("s"), lane)], 0).faults == 1


def test_a_missing_seal_is_a_fault(session):
    path, _ = session
    with sealog.open(path) as store:
        store.create_session("open")
    result = compare(path, [(SessionPlan("open"), Acknowledged(sealed_at=0))], 0)
    assert (result.lost, result.faults) == (0, 1)


def test_a_position_acknowledged_twice_is_a_fault(session):
    path, lane = session
    lane.repeated.append(1)
    assert compare(path, [(SessionPlan("s"), lane)], 0).faults == 1


def test_events_in_flight_are_extra_and_bounded(session):
    path, lane = session
    del lane.digests[1]
    assert compare(path, [(SessionPlan("s"), lane)], 1).faults == 0
    result = compare(path, [(SessionPlan("s"), lane)], 0)
    assert (result.extra, result.lost, result.faults) == (1, 0, 1)


def test_the_report_of_the_writer_is_read_to_its_last_whole_line():
    report = b"ready\na 0 0 aa\na 1 0 bb\nf 0 1 cc\ns 1 1\na 0 0 dd\nx it went wrong\na 1 1 e"
    (first, second), failure = parse_acknowledgements(report, 2)
    assert (first.digests, first.files, first.sealed_at, first.repeated) == ({0: "dd"}, {1: "cc"}, None, [0])
    assert (second.digests, second.sealed_at, second.repeated) == ({0: "bb"}, 1, [])
    assert failure == "it went wrong"


def test_a_watcher_is_told_what_goes_on(tmp_path):
    phases: list[str] = []

    class Noting(Watcher):
        def phase(self, text: str, total: float) -> None:
            phases.append(text)

    assert run_demo(settings(tmp_path / "store"), Noting()).ok
    assert phases == [
        "measuring a plain write + fdatasync loop",
        "creating sessions",
        "appending until the kill",
        "recovering in a new process",
        "comparing with what was acknowledged",
        "measuring the plain loop again",
    ]
