"""Help as a page of a manual: plain text that fits any terminal, the same whatever typer is installed.

The docstring of a command is its help. Paragraphs that begin with a title and a colon on a line of their own
stand at the end of the page.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

__all__ = ["EXAMPLES", "ManualCommand", "ManualGroup", "Page", "page_of", "short_help"]

EXAMPLES: Final = "Examples"
"""The title of the paragraph whose lines stay as they are."""

_TITLE: Final = re.compile("[A-Z][a-z ]+:")
_NAMES_MAX: Final = 24
"""Columns for names of options; the help of longer ones stands below."""


class Page:
    """What help and reference say about a command.

    Attributes:
        usage: what follows the name.
        text: paragraphs.
        arguments: names and help.
        options: names and help.
        closing: titles and lines of the paragraphs that have a title.
    """

    def __init__(self, command: Any, ctx: Any = None) -> None:
        self.text: list[str] = []
        self.closing: list[tuple[str, list[str]]] = []
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            first, *lines = paragraph.split("\n")
            if _TITLE.fullmatch(first) and lines:
                self.closing.append((first.removesuffix(":"), [line.removeprefix("    ") for line in lines]))
            elif paragraph:
                self.text.append(" ".join(paragraph.split()))
        params: list[Any] = [param for param in command.params if not getattr(param, "hidden", False)]
        self.arguments = [_argument(param) for param in params if param.param_type_name == "argument"]
        self.options = [_option(param) for param in params if param.param_type_name == "option"]
        help_names = getattr(ctx, "help_option_names", None) or ["-h", "--help"]
        self.options.append((", ".join(sorted(help_names, key=len)), "Show this page."))
        names = [name for name, _ in self.arguments]
        if hasattr(command, "commands"):
            names.append("COMMAND [ARGUMENT]...")
        self.usage = " ".join(["[OPTION]...", *names])


def page_of(command: Any) -> Page:
    """Return what there is to say about a command."""
    return Page(command)


def short_help(command: Any) -> str:
    """Return the first sentence about a command, or its beginning."""
    paragraphs = Page(command).text
    return re.split("[.:;](?: |$)", paragraphs[0])[0] if paragraphs else ""


def _argument(param: Any) -> tuple[str, str]:
    return param.metavar or param.name.upper(), param.help or ""


def _option(param: Any) -> tuple[str, str]:
    names = ", ".join(sorted(param.opts, key=len))
    takes_value = not (getattr(param, "is_flag", False) or getattr(param, "count", False))
    if takes_value and param.metavar:
        names += f" {param.metavar}"
    said: list[str] = [param.help or ""]
    if param.envvar:
        said.append(f"[{param.envvar}]")
    if takes_value and param.show_default and param.default is not None and not callable(param.default):
        said.append(f"[default: {getattr(param.default, 'value', param.default)}]")
    return names, " ".join(part for part in said if part)


def _write(page: Page, command: Any, ctx: Any, formatter: Any) -> None:
    formatter.write_usage(ctx.command_path, page.usage)
    for paragraph in page.text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(paragraph)
    for title, rows in (*_commands(command), ("Arguments", page.arguments), ("Options", page.options)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_NAMES_MAX)
    for title, lines in page.closing:
        with formatter.section(title):
            if title == EXAMPLES:
                for line in lines:
                    formatter.write_text(line)
            else:
                _write_lines(lines, formatter)


def _write_lines(lines: list[str], formatter: Any) -> None:
    """Write a table if each line has a name and what it means, else running text."""
    rows = [tuple(line.split("  ", 1)) for line in lines]
    if all(len(row) == 2 for row in rows):  # noqa: PLR2004 — a name and what it means
        formatter.write_dl(rows)
    else:
        formatter.write_text(" ".join(lines))


def _commands(group: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for name, command in getattr(group, "commands", {}).items():
        if not command.hidden:
            title = command.rich_help_panel
            section = title if isinstance(title, str) else "Commands"
            sections.setdefault(section, []).append((name, short_help(command)))
    names = [name for rows in sections.values() for name, _ in rows]
    width = max(map(len, names), default=0)
    return [(title, [(name.ljust(width), text) for name, text in rows]) for title, rows in sections.items()]


class ManualCommand(TyperCommand):
    """A command whose help is a page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        _write(Page(self, ctx), self, ctx, formatter)


class ManualGroup(TyperGroup):
    """A group of commands whose help is a page, with the commands in sections."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the page."""
        _write(Page(self, ctx), self, ctx, formatter)
