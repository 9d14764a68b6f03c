"""The frame around all commands: exit codes, one-line errors, and a reader that went away."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from .. import __version__
from ..storage.errors import (
    AttachmentCorruptError,
    AttachmentMissingError,
    CorruptionError,
    SealogError,
)
from .manual import ManualCommand, ManualGroup
from .messages import said
from .output import flush_stdout, silence_stdout, warn

if TYPE_CHECKING:
    from collections.abc import Callable

OK: Final = 0
DAMAGE: Final = 1
ERROR: Final = 2
PARTLY: Final = 3

LOOK: Final = "Look at sessions"
CHECK: Final = "Check and mend"
CHANGE: Final = "Finish and remove"
EXCHANGE: Final = "Exchange with other programs"
TRY: Final = "Try it"

_DAMAGE_ERRORS = (CorruptionError, AttachmentMissingError, AttachmentCorruptError)
_CALL_ERROR: Any = typer.BadParameter.__mro__[2]  # of what parses the command line, wherever that is from


class _Group(ManualGroup):
    """Turns the errors of all commands into one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _CALL_ERROR as error:
            raise _refused(error) from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `sealog show … | head` has read enough
            silence_stdout()
            raise typer.Exit(OK) from None
        except _CALL_ERROR as error:
            raise _refused(error) from None
        except (SealogError, OSError) as error:
            warn(f"sealog: {said(error)}")
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        finally:
            flush_stdout()


def exit_code(error: Exception) -> int:
    """Return the exit code for an error."""
    return DAMAGE if isinstance(error, _DAMAGE_ERRORS) else ERROR


def _refused(error: Any) -> Any:
    """Say in one line what is wrong with the call."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return error
    path = error.ctx.command_path if error.ctx is not None else "sealog"
    message = error.format_message().rstrip(".?")
    if getattr(getattr(error, "param", None), "name", None) == "store" and message.startswith("Missing"):
        message = "no store given: use --store DIR, or set SEALOG_STORE"
    elif type(error).__name__ == "NoSuchOption":
        message = f"{message}; an id that starts with '-' goes after '--'"
    message = message.replace("Value error, ", "")
    warn(f"{path}: {message[:1].lower()}{message[1:]}; try '{path} --help'")
    return typer.Exit(ERROR)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(name: str, section: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command.

    Args:
        name: what it is called.
        section: of `sealog --help`.
    """
    return app.command(name, cls=ManualCommand, rich_help_panel=section)


def _print_version(value: bool) -> None:  # noqa: FBT001 — the shape of a typer callback
    if value:
        sys.stdout.write(f"sealog {__version__}\n")
        raise typer.Exit(OK)


@app.callback()
def sealog(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Look at, check, finish, import and export the session logs of AI agents.

    A store is a folder of sessions; a session is an append-only log of events, with files attached. The
    programs that run agents write them with the library of the same name. This command may run beside
    those programs: what only reads takes no lock, changes nothing, and never makes a store.

    Store:
        Every command takes --store DIR. Without it, the store is the one named in SEALOG_STORE.

    Output:
        Text for people; --json prints one JSON object a line. Control characters of events are shown as
        escapes and never reach the terminal. NO_COLOR turns colours off; what is not a terminal gets
        neither colours nor progress bars. Times are UTC.

    Exit codes:
        0  all is well
        1  damage was found, or something acknowledged is lost
        2  the call was wrong or could not be carried out
        3  done, but not all of it: nothing matched, a record conflicts or has a problem, a file was there
        130  interrupted with Ctrl-C

    Examples:
        sealog ls --store ~/agents --sort activity
        sealog show job-17 --tail 20
        sealog tail -f job-17
        sealog grep -i 'timed? out'
        sealog import chat.jsonl && sealog export chat --format html --output chat.html

    Ids:
        An id is 1 to 255 characters of A-Z, a-z, 0-9, _ and -. One that starts with '-' goes after '--':
        sealog show -- -odd-id
    """
