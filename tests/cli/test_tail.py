"""tail shows the end of a session, and follows what another process appends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import sealog

WRITER = """
import sys, sealog
with sealog.open(sys.argv[1]) as store:
    session = store.open_session("live")
    for line in sys.stdin:
        if line == "seal\\n":
            session.seal()
        else:
            session.append("note", line.strip())
        print("done", flush=True)
"""


class Writer:
    """Another process that owns the session."""

    def __init__(self, store):
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def tell(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def live(tmp_path):
    path = tmp_path / "store"
    with sealog.open(path) as opened:
        session = opened.create_session("live")
        for number in range(20):
            session.append("note", f"old {number}")
    return path


@pytest.fixture
def writer(live):
    found = Writer(live)
    yield found
    found.process.stdin.close()
    found.process.wait()
    found.process.stdout.close()


@pytest.fixture
def follow(live):
    started = []

    def start(*options):
        process = subprocess.Popen(
            [sys.executable, "-m", "sealog.cli", "tail", "-f", "live", "--store", str(live), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            bufsize=1,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [((), range(10, 20)), (("-n", "2"), range(18, 20)), (("-n", "0"), []), (("-n", "99"), range(20))],
)
def test_tail_shows_the_last_events(invoke, live, lines, options, expected):
    result = invoke("tail", "live", "--store", live, "--json", *options)
    assert result.exit_code == 0
    assert [line["position"] for line in lines(result.stdout)] == list(expected)


def test_tail_prints_for_people(invoke, live):
    output = invoke("tail", "live", "--store", live, "-n", "1").stdout
    assert output.startswith("19  note  ")
    assert output.endswith("\n    old 19\n")


def test_follow_shows_what_another_process_appends_until_it_seals(live, writer, follow):
    process = follow("-n", "1", "--json")
    assert json.loads(process.stdout.readline())["text"] == "old 19"
    for number in range(3):
        writer.tell(f"new {number}")
        assert json.loads(process.stdout.readline())["text"] == f"new {number}"
    writer.tell("seal")
    assert process.stdout.read() == ""
    assert process.wait() == 0
    assert process.stderr.read() == "live: sealed, there will be no more\n"


def test_follow_ends_when_nobody_reads_though_nothing_comes(follow):
    process = follow("-n", "1")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == ""


def test_an_interrupt_ends_it_quietly(follow):
    process = follow("-n", "1")
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 130
    assert process.stderr.read() == ""


def test_follow_of_a_sealed_session_ends_at_once(invoke, store):
    result = invoke("tail", "-f", "agent-2", "--store", store)
    assert result.exit_code == 0
    assert "done" in result.stdout
    assert result.stderr == "agent-2: sealed, there will be no more\n"


def test_follow_ends_when_the_session_is_deleted(live, follow):
    process = follow("-n", "1", "--json")
    process.stdout.readline()
    with sealog.open(live) as opened:
        opened.delete_session("live")
    assert process.wait() == 2
    assert process.stderr.read().count("\n") == 1
