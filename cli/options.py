"""What several commands take: the store, sessions, and JSON instead of text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..actors.store import Store, open_store
from ..storage.errors import SealogError


def complete_sessions(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids in the store that start so, for the shell; nothing if anything is wrong."""
    chosen: Any = ctx.params.get("store") or os.environ.get("SEALOG_STORE")
    if not chosen:
        return []
    given: Any = ctx.params.get("sessions") or ()
    try:
        with open_for_reading(Path(chosen).expanduser()) as store:
            return [name for name in store.session_ids() if name.startswith(incomplete) and name not in given]
    except (SealogError, OSError):
        return []


StoreOption = Annotated[
    Path,
    typer.Option(
        "--store",
        metavar="DIR",
        envvar="SEALOG_STORE",
        help="The store: a folder of sessions.",
        show_default=False,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]

SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Id of the session.",
        show_default=False,
        autocompletion=complete_sessions,
    ),
]

SessionsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION]...",
        help="Ids of sessions; all of the store if none is given.",
        autocompletion=complete_sessions,
    ),
]

SomeSessionsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SESSION...",
        help="Ids of sessions.",
        show_default=False,
        autocompletion=complete_sessions,
    ),
]


def open_for_reading(path: Path) -> Store:
    """Open a store that is there; take no locks, make and change nothing.

    Raises:
        StoreNotFoundError: there is none.
    """
    return open_store(path, create=False, read_only=True)


def open_for_writing(path: Path) -> Store:
    """Open a store that is there, to change it.

    Raises:
        StoreNotFoundError: there is none.
    """
    return open_store(path, create=False)
