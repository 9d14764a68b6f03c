"""Other processes that use a store: scripts that talk over their standard input and output."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SAFETY_S: Final = 60.0

PRELUDE: Final = """
import os, signal, sys, threading, time
import sealog
path = sys.argv[1]
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one call: lines of threads do not mix
def hear():
    return sys.stdin.readline().strip()
def after(call):
    try:
        return call()
    except BaseException as error:
        return type(error).__name__
"""


class Child:
    """One process; its lines are read by a thread, so that nothing blocks for ever."""

    def __init__(self, script: str, path: Path) -> None:
        code = PRELUDE + textwrap.dedent(script)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        for line in stream(self.process.stdout):
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_errors(self) -> None:
        self._errors.extend(stream(self.process.stderr))

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def hear(self) -> str:
        """Return its next line."""
        line = self._lines.get(timeout=SAFETY_S)
        assert line is not None, f"it has ended: {self.errors()}"
        return line

    def rest(self) -> list[str]:
        """Return all its lines up to its end, without one that was cut off."""
        lines = []
        while (line := self._lines.get(timeout=SAFETY_S)) is not None:
            lines.append(line)
        return lines

    def say(self, line: str) -> None:
        """Send it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> list[str]:
        """Kill it, as a power supply would not; return the lines it had still said."""
        self.signal(signal.SIGKILL)
        self.process.wait(SAFETY_S)
        return self.rest()

    def errors(self) -> str:
        """Return what it wrote to its standard error, up to its end."""
        self._readers[1].join(SAFETY_S)
        return "".join(self._errors)

    def end(self, code: int = 0) -> list[str]:
        """Wait for its end; return the lines that it had still said."""
        lines = self.rest()
        assert self.process.wait(SAFETY_S) == code, self.errors()
        return lines

    def close(self) -> None:
        """Kill it, and give up the pipes."""
        self.process.kill()
        self.process.wait(SAFETY_S)
        for reader in self._readers:
            reader.join(SAFETY_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def stream(pipe: IO[str] | None) -> IO[str]:
    """Return a pipe that is there."""
    assert pipe is not None
    return pipe


class Children:
    """Starts processes on one store, and kills what is left of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._children: list[Child] = []

    def start(self, script: str, path: Path | None = None) -> Child:
        """Run a script, which finds `path`, `say`, `hear`, `after` and the usual modules."""
        child = Child(script, path or self.path)
        self._children.append(child)
        return child

    def run(self, script: str, code: int = 0) -> list[str]:
        """Run a script to its end; return its lines."""
        return self.start(script).end(code)

    def close(self) -> None:
        """Kill them all."""
        for child in self._children:
            child.close()
