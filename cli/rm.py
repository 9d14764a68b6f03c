"""`sealog rm`: delete sessions."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ..storage.errors import FormatError, SealogError, SessionNotSealedError
from .app import CHANGE, DAMAGE, ERROR, OK, command, exit_code
from .messages import said
from .options import SomeSessionsArgument, StoreOption, open_for_writing
from .output import warn
from .progress import new_progress

_HINT: Final = "--force deletes it all the same"
_SEVERITY: Final = (OK, ERROR, DAMAGE)


@command("rm", CHANGE)
def rm(
    sessions: SomeSessionsArgument,
    store: StoreOption,
    *,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Also sessions that are not sealed, or damaged.")
    ] = False,
) -> None:
    """Delete sessions, with their attachments and quarantine.

    A session that is not sealed, or cannot be read, is only deleted with --force; one that another process
    owns is not deleted at all. There is no way back. If one is refused the others are deleted all the same,
    and the exit code is not 0.

    Examples:
        sealog rm job-17
        sealog ls --status sealed --json | jq -r .session_id | xargs sealog rm --
    """
    worst = OK
    with open_for_writing(store) as opened, new_progress() as bar:
        for session_id in bar.track(sessions, description="deleting"):
            try:
                opened.delete_session(session_id, require_sealed=not force)
            except SessionNotSealedError:
                warn(f"sealog: session {session_id!r} is not sealed, so it was not deleted; {_HINT}")
                worst = max(worst, ERROR, key=_SEVERITY.index)
            except FormatError as error:
                warn(f"sealog: {said(error)}; {_HINT}")
                worst = max(worst, exit_code(error), key=_SEVERITY.index)
            except (SealogError, OSError) as error:
                warn(f"sealog: {said(error)}")
                worst = max(worst, exit_code(error), key=_SEVERITY.index)
    if worst != OK:
        raise typer.Exit(worst)
