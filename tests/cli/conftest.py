"""Helpers for the tests of the command: in this process, and as a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from typer.testing import CliRunner, Result

import sealog
from sealog.cli.commands import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_COLOUR_VARIABLES = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "SEALOG_STORE", "TERM", "TTY_COMPATIBLE")


class Invoke(Protocol):
    def __call__(self, *arguments: object, **environment: str) -> Result: ...


class Run(Protocol):
    def __call__(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _COLOUR_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def invoke() -> Invoke:
    """Call the command in this process."""

    def call(*arguments: object, **environment: str) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)

    return call


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the command as a process, in an empty folder."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sealog.cli", *map(str, arguments)],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with one open session, one sealed one, and one without events."""
    path = tmp_path / "store"
    with sealog.open(path) as opened:
        session = opened.create_session("agent-1", "2026-01-02T03:04:05Z", {"title": "first try"})
        session.append("user-message", "hello", at_data())
        session.append("assistant-message", "hi\nthere", key="k-1")
        session.attach(b"bytes of a picture", file_name="shot.png", text="what it saw")
        sealed = opened.create_session("agent-2")
        sealed.append("user-message", "done")
        sealed.seal()
        opened.create_session("agent-3")
    return path


def at_data() -> dict[str, object]:
    """Return data of every type that JSON knows, and bytes, which it does not."""
    return {"n": 1, "list": [True, None, 1.5, "text"], "bytes": b"\x00\xff"}


@pytest.fixture
def damaged(store: Path) -> Path:
    """Return the store with a flipped bit in an acknowledged event of agent-1."""
    log = store / "agent-1" / "log"
    body = log.read_bytes()
    at = body.index(b"hello")
    log.write_bytes(body[:at] + b"H" + body[at + 1 :])
    return store


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return a store without sessions."""
    sealog.open(tmp_path / "empty").close()
    return tmp_path / "empty"


@pytest.fixture
def torn(store: Path) -> Path:
    """Return the store with the start of a frame behind the last event of agent-1."""
    log = store / "agent-1" / "log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[16:20] + b"half of a frame")
    return store


@pytest.fixture
def lines() -> Callable[[str], list[Any]]:
    """Parse output of one JSON value a line."""

    def parse(text: str) -> list[Any]:
        return [json.loads(line) for line in text.splitlines()]

    return parse
