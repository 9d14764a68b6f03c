"""The `sealog` command. It needs the extra `sealog[cli]`; nothing else of the library does."""

from __future__ import annotations

import contextlib
import io
import sys

__all__ = ["main"]

_EXTRA = ("typer", "rich", "click")


def main() -> None:
    """Run the command with the arguments of the process, and exit with its code."""
    try:
        from .commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write("the sealog command needs its extra: pip install 'sealog[cli]'\n")
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):  # text that the terminal's encoding lacks is escaped
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError):
                stream.reconfigure(errors="backslashreplace")
    app(prog_name="sealog")
