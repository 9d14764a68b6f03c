"""docs/commands.md, made from the program: `python -m sealog.cli.reference > docs/commands.md`."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import typer.main

from .manual import EXAMPLES, Page

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reference"]

_INTRODUCTION: Final = """\
# Commands

Made from the program: `python -m sealog.cli.reference > docs/commands.md`. A test fails if it is out of date.
"""
_COMPLETION: Final = ("--install-completion", "--show-completion")


def reference() -> str:
    """Return the reference of all commands as Markdown."""
    from .commands import app

    root = typer.main.get_command(app)
    return _INTRODUCTION + "".join(_section("sealog", root, level=2))


def _section(path: str, command: Any, *, level: int) -> Iterator[str]:
    page = Page(command)
    yield f"\n{'#' * level} {path}\n\n    {path} {page.usage}\n"
    for paragraph in page.text:
        yield f"\n{_plain(paragraph)}\n"
    rows = [*page.arguments, *page.options]
    yield "\n| | |\n|---|---|\n"
    for names, text in rows:
        # The shell is asked for them only where typer finds one, and their words are typer's.
        if names not in _COMPLETION:
            yield f"| `{names}` | {_plain(text)} |\n"
    for title, lines in page.closing:
        yield f"\n**{title}**\n\n"
        yield from _closing(title, lines)
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _section(f"{path} {name}", inner, level=3 if path == "sealog" else 4)


def _closing(title: str, lines: list[str]) -> Iterator[str]:
    if title == EXAMPLES:
        yield from (f"    {line}\n" for line in lines)
    elif all("  " in line for line in lines):
        for line in lines:
            name, _, meaning = line.partition("  ")
            yield f"- `{name}`: {_plain(meaning)}\n"
    else:
        yield f"{_plain(' '.join(lines))}\n"


def _plain(text: str) -> str:
    """Return text with nothing in it that Markdown takes for markup."""
    return re.sub(r"([\\`*<>|])", r"\\\1", text)


if __name__ == "__main__":
    sys.stdout.write(reference())
