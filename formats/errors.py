"""What can go wrong with other people's transcripts, besides the errors of the store.

SealogError
├── UnknownFormatError          (ValueError)   no format fits the content, or none has that name
├── NotAnImportError            (ValueError)   the session is somebody else's
├── NotExportableError          (ValueError)   the session holds nothing of that format, or it is damaged
└── InvalidSessionIdError
    └── FileNameError                          the file's name makes no session id
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage.errors import InvalidSessionIdError, SealogError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FileNameError", "NotAnImportError", "NotExportableError", "UnknownFormatError"]


class UnknownFormatError(SealogError, ValueError):
    """No format fits; nothing was read or written. `known` are the names of those there are."""

    def __init__(self, subject: str, reason: str, known: Sequence[str]) -> None:
        """Name the file or the wanted format, what is wrong with it, and the formats there are."""
        super().__init__(f"{subject}: {reason}; the formats are {', '.join(known)}")
        self.subject = subject
        self.reason = reason
        self.known = tuple(known)


class FileNameError(InvalidSessionIdError):
    """The name of a file cannot be a session id; nothing was written."""

    def __init__(self, path: str, session_id: str) -> None:
        """Name the file and the id that it would make."""
        SealogError.__init__(
            self,
            f"{path}: the name makes no session id ({session_id!r}; one is 1 to 255 characters of A-Z, a-z, "
            "0-9, '_' and '-'); choose one: session_id= here, --as on the command line",
        )
        self.path = path
        self.session_id = session_id


class NotAnImportError(SealogError, ValueError):
    """The session exists and holds something else than the file; nothing was written."""

    def __init__(self, session_id: str, path: str, reason: str) -> None:
        """Name the session, the file and what the session is."""
        super().__init__(
            f"{path}: session {session_id!r} exists and {reason}; choose the session: session_id= here, "
            "--as on the command line"
        )
        self.session_id = session_id
        self.path = path
        self.reason = reason


class NotExportableError(SealogError, ValueError):
    """The session cannot be written in that format; `events` names those that are in the way, if some are."""

    def __init__(self, session_id: str, format_name: str, reason: str, events: tuple[str, ...] = ()) -> None:
        """Name the session, the format, the reason, and positions with what is in the way there."""
        super().__init__(f"session {session_id!r} cannot be written as {format_name}: {reason}")
        self.events = events
        self.session_id = session_id
        self.format_name = format_name
        self.reason = reason
