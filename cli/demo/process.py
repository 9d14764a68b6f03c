"""Starting another Python process that imports what this one imports."""

from __future__ import annotations

import subprocess
import sys
from typing import IO, Any, Final

import msgspec

# The child takes the import path from here and not from the current directory, whose files might have
# the names of modules. Its job comes through standard input: an argument could be too long.
_START: Final = (
    "import sys, importlib, json; job = json.load(sys.stdin); sys.path[:] = job['path']; "
    "importlib.import_module(job['module']).run(job['job'])"
)


def start(module: str, job: msgspec.Struct, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that calls `run(job)` of a module of this package.

    Args:
        module: its name inside the package.
        job: what it is given, as plain values.
        errors: a file for what it prints on standard error.

    Returns:
        The process; its standard output is a pipe.
    """
    process = subprocess.Popen(  # noqa: S603 — this interpreter, with arguments of our own
        [sys.executable, "-P", "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        bufsize=0,
    )
    told = {"path": sys.path, "module": f"{__package__}.{module}", "job": job}
    stdin: Any = process.stdin
    try:
        stdin.write(msgspec.json.encode(told))
        stdin.close()
    except BaseException:
        stop(process)
        raise
    return process


def stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process if it still runs, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def last_line(errors: IO[bytes]) -> str:
    """Return the last line that a process printed on standard error, for a message."""
    errors.seek(0)
    lines = errors.read().decode(errors="backslashreplace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
