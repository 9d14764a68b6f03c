"""All commands. A new one is a module that adds itself to the app, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from .app import app

__all__ = ["COMMANDS", "app"]

_MODULES: Final = {
    "ls": "ls",
    "show": "show",
    "tail": "tail",
    "grep": "grep",
    "stats": "stats",
    "attachments": "attachments",
    "verify": "verify",
    "repair": "repair",
    "quarantine": "quarantine",
    "seal": "seal",
    "rm": "rm",
    "import": "importing",
    "export": "exporting",
    "demo": "demo.command",
}
"""Modules by command, in the order of `sealog --help`."""

COMMANDS: Final = tuple(_MODULES)

for _module in _MODULES.values():
    import_module(f".{_module}", __package__)
