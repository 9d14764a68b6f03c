"""Every error that sealog raises on purpose.

SealogError
├── SessionNotFoundError        (LookupError)        no session of that id
├── SessionExistsError          (FileExistsError)    create: the id is taken
├── SessionLockedError          (BlockingIOError)    another process owns the session
├── SessionSealedError          (ValueError)         append after seal
├── SessionNotSealedError       (ValueError)         the call needs a sealed session
├── SessionDeletedError         (LookupError)        deleted, or deleted and made anew
├── SessionFailedError          (RuntimeError)       gave up after repeated faults; carries the cause
├── StoreClosedError            (RuntimeError)       store or handle closed, or a forked child
├── StoreNotFoundError          (FileNotFoundError)  no store at that path
├── StoreReadOnlyError          (PermissionError)    a write on a store opened read-only
├── BlockingCallError           (RuntimeError)       a blocking call that would wait for its own thread
├── InvalidSessionIdError       (ValueError)
├── InvalidHeaderError          (ValueError)         blank created_at, bad labels
├── InvalidEventError           (ValueError)         names the place that cannot be stored
├── LimitExceededError          (ValueError)         a named limit of the format
├── PositionConflictError       (ValueError)         expected=… is not the next position
├── KeyConflictError            (ValueError)         key=… is known with other content
├── FormatError                 (ValueError)
│   ├── UpgradeRequiredError                         written by a newer sealog
│   └── CorruptionError                              acknowledged data damaged or gone
├── AttachmentMissingError      (FileNotFoundError)
├── AttachmentCorruptError      (ValueError)
├── MailboxFullError            (TimeoutError)       not taken in time: certainly not written
├── AppendOutcomeUnknownError   (TimeoutError)       it may be on disk or not
├── StorageFullError            (OSError)            no space: certainly not written
├── FeatureNotFoundError        (LookupError)        harness memory: no feature of that id
└── InvalidStateError           (ValueError)         a state file of an older program cannot be taken over

Each carries its data as attributes, says what happened to which session or file and what to do, and can be
pickled. Errors of the operating system that are none of these (a permission, a failing disk) are raised as
the OSError they are while opening and reading; while appending they become AppendOutcomeUnknownError with
the OSError as cause.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

__all__ = [
    "AppendOutcomeUnknownError",
    "AttachmentCorruptError",
    "AttachmentMissingError",
    "BlockingCallError",
    "CorruptionError",
    "FeatureNotFoundError",
    "FormatError",
    "InvalidEventError",
    "InvalidHeaderError",
    "InvalidSessionIdError",
    "InvalidStateError",
    "KeyConflictError",
    "LimitExceededError",
    "MailboxFullError",
    "PositionConflictError",
    "SealogError",
    "SessionDeletedError",
    "SessionExistsError",
    "SessionFailedError",
    "SessionLockedError",
    "SessionNotFoundError",
    "SessionNotSealedError",
    "SessionSealedError",
    "StorageFullError",
    "StoreClosedError",
    "StoreNotFoundError",
    "StoreReadOnlyError",
    "UpgradeRequiredError",
]


def _rebuild(cls: type[SealogError], args: tuple[Any, ...], state: dict[str, Any]) -> SealogError:
    error = cls.__new__(cls, *args)
    super(SealogError, error).__init__(*args)
    for name, value in state.items():
        setattr(error, name, value)
    return error


class SealogError(Exception):
    """Base of all errors of this library; `message` is the whole text."""

    message: str
    _errno: int | None = None

    def __init__(self, message: str) -> None:
        """Keep the text; subclasses add their data as attributes."""
        # An OSError takes its errno from two arguments.
        super().__init__(*((message,) if self._errno is None else (self._errno, message)))
        self.message = message

    def __str__(self) -> str:
        """Return the text without errno decoration."""
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by attributes, since constructors take data and not text."""
        state = {**self.__dict__, "future": None} if hasattr(self, "future") else dict(self.__dict__)
        return _rebuild, (type(self), self.args, state)


class SessionNotFoundError(SealogError, LookupError):
    """No session of that id exists in the store."""

    def __init__(self, session_id: str, store: str) -> None:
        """Name the id and the store that was searched."""
        super().__init__(
            f"session {session_id!r} does not exist in store {store}; "
            "create it with create_session(), or check the id with session_ids()"
        )
        self.session_id = session_id
        self.store = store


class SessionExistsError(SealogError, FileExistsError):
    """A session of that id exists already."""

    _errno = errno.EEXIST

    def __init__(self, session_id: str, path: str) -> None:
        """Name the id and the directory that is in the way."""
        super().__init__(
            f"session {session_id!r} exists already at {path}; "
            "open it with open_session() or choose another id"
        )
        self.session_id = session_id
        self.path = path


class SessionLockedError(SealogError, BlockingIOError):
    """Another process owns the session; nothing was read or written.

    `holder` holds what that process wrote about itself (pid, host, started), None if it could not be read.
    """

    _errno = errno.EWOULDBLOCK

    def __init__(self, session_id: str, path: str, holder: dict[str, Any] | None) -> None:
        """Name the session, the lock file and who holds it."""
        who = (
            f"process {holder.get('pid')} on {holder.get('host')}, there since {holder.get('started')}"
            if holder
            else "another process"
        )
        super().__init__(
            f"session {session_id!r} is owned by {who} (lock {path}); "
            "close it there, or read it here with read_only=True"
        )
        self.session_id = session_id
        self.path = path
        self.holder = holder


class SessionSealedError(SealogError, ValueError):
    """The session is sealed: nothing can be appended any more."""

    def __init__(self, session_id: str) -> None:
        """Name the session."""
        super().__init__(
            f"session {session_id!r} is sealed and takes no more events; append to a new session"
        )
        self.session_id = session_id


class SessionNotSealedError(SealogError, ValueError):
    """The call works on sealed sessions only; nothing was changed."""

    def __init__(self, session_id: str, action: str) -> None:
        """Name the session and the refused action."""
        super().__init__(
            f"session {session_id!r} is not sealed, so it was not {action}; "
            "seal() it first, or use the call that takes any session"
        )
        self.session_id = session_id


class SessionDeletedError(SealogError, LookupError):
    """The session behind this handle was deleted (and perhaps made anew under the same id)."""

    def __init__(self, session_id: str, path: str) -> None:
        """Name the session and where it was."""
        super().__init__(
            f"session {session_id!r} was deleted from {path}; this handle is dead, "
            "open_session() shows what is there now"
        )
        self.session_id = session_id
        self.path = path


class SessionFailedError(SealogError, RuntimeError):
    """The session stopped working; `cause` is the fault. What the call wanted was not written."""

    def __init__(self, session_id: str, path: str, cause: BaseException, *, given_up: bool) -> None:
        """Name the session, its directory, the fault and whether a restart is under way."""
        what = (
            "failed and was not restarted again; remove the cause, then open_session() tries recovery"
            if given_up
            else "failed and is restarting; this request was not written, send it again"
        )
        super().__init__(f"session {session_id!r} at {path} {what} (cause: {cause!r})")
        self.session_id = session_id
        self.path = path
        self.cause = cause
        self.given_up = given_up


class StoreClosedError(SealogError, RuntimeError):
    """The store or the handle was closed, or belongs to the parent process; nothing was written."""

    def __init__(self, path: str, reason: str = "was closed; open it again with sealog.open()") -> None:
        """Name the store and why it takes no calls."""
        super().__init__(f"store {path} {reason}")
        self.path = path
        self.reason = reason


class StoreNotFoundError(SealogError, FileNotFoundError):
    """No store is at that path."""

    _errno = errno.ENOENT

    def __init__(self, path: str, reason: str) -> None:
        """Name the path and what stands there instead."""
        super().__init__(f"no sealog store at {path}: {reason}")
        self.path = path
        self.reason = reason


class StoreReadOnlyError(SealogError, PermissionError):
    """A call that writes, on a store opened with read_only=True or in a folder that cannot be written."""

    _errno = errno.EROFS

    def __init__(self, path: str, action: str, obstacle: str | None = None) -> None:
        """Name the store, the refused call, and what is in the way if that is not read_only=True."""
        super().__init__(
            f"store {path} was opened read-only, so {action} is not possible; open it without read_only=True"
            if obstacle is None
            else f"store {path} cannot be written ({obstacle}); make it writable, or open it read_only=True"
        )
        self.path = path
        self.action = action


class BlockingCallError(SealogError, RuntimeError):
    """A blocking call from one of sealog's own threads (a future's callback) would wait for itself."""

    def __init__(self, action: str) -> None:
        """Name the refused call."""
        super().__init__(
            f"{action} was called on a thread of sealog itself (from a callback of a future) and "
            "would wait for that thread; use append_nowait() there or hand the work to another thread"
        )
        self.action = action


class InvalidSessionIdError(SealogError, ValueError):
    """The id is not 1–255 characters of `[A-Za-z0-9_-]`."""

    def __init__(self, session_id: object) -> None:
        """Show the id that was refused."""
        shown = repr(session_id)
        if len(shown) > 100:  # noqa: PLR2004 — what fits a line
            shown = f"{shown[:100]}… ({len(shown)} characters)"
        super().__init__(
            f"{shown} is not a session id; use 1 to 255 characters of A-Z, a-z, 0-9, '_' and '-'"
        )
        self.session_id = session_id


class InvalidHeaderError(SealogError, ValueError):
    """created_at is blank or not text, or labels are not str → str; nothing was created."""

    def __init__(self, session_id: str, field: str, reason: str) -> None:
        """Name the session, the field and what is wrong with it."""
        super().__init__(f"session {session_id!r} was not created: {field} {reason}")
        self.session_id = session_id
        self.field = field
        self.reason = reason


class InvalidEventError(SealogError, ValueError):
    """The event cannot be stored; nothing was written. `place` names the field, as `data.args[3]`."""

    def __init__(self, place: str, reason: str, session_id: str | None = None) -> None:
        """Name the place inside the event, what is wrong there, and the session it was for."""
        where = "" if session_id is None else f"session {session_id!r}: "
        super().__init__(f"{where}event not stored: {place} {reason}")
        self.place = place
        self.reason = reason
        self.session_id = session_id


class LimitExceededError(SealogError, ValueError):
    """A limit of the format (docs/format.md) would be exceeded; nothing was written."""

    def __init__(
        self, limit: str, maximum: int, actual: int, advice: str, session_id: str | None = None
    ) -> None:
        """Name the limit, its value, what was asked for, the way out, and the session it was for."""
        where = "" if session_id is None else f"session {session_id!r}: "
        super().__init__(f"{where}{limit}: {actual:,} is over the limit of {maximum:,}; {advice}")
        self.limit = limit
        self.maximum = maximum
        self.actual = actual
        self.advice = advice
        self.session_id = session_id


class PositionConflictError(SealogError, ValueError):
    """`expected` is not the position the event would get; nothing was written."""

    def __init__(self, session_id: str, expected: int, actual: int) -> None:
        """Name the session, the expected and the actual next position."""
        super().__init__(
            f"session {session_id!r}: expected the next position to be {expected}, it is {actual}; "
            "read what was appended since and decide again"
        )
        self.session_id = session_id
        self.expected = expected
        self.actual = actual


class KeyConflictError(SealogError, ValueError):
    """The key is known with other content; nothing was written. `position` is the known event's."""

    def __init__(self, session_id: str, key: str, position: int | None, reason: str) -> None:
        """Name the session, the key, where it is known from and what differs."""
        super().__init__(f"session {session_id!r}: key {key!r} {reason}; nothing was written")
        self.session_id = session_id
        self.key = key
        self.position = position
        self.reason = reason


class FormatError(SealogError, ValueError):
    """Bytes on disk are not what this version can read. `path`, `offset` and `reason` tell where."""

    def __init__(self, path: str, offset: int, reason: str, advice: str) -> None:
        """Name the file, the byte offset, the reason and the way out."""
        super().__init__(f"{path}: at byte {offset}: {reason}; {advice}")
        self.path = path
        self.offset = offset
        self.reason = reason


class UpgradeRequiredError(FormatError):
    """Written by a newer sealog; the file was not touched."""

    def __init__(self, path: str, offset: int, reason: str) -> None:
        """Name the file, the byte offset and what is unknown."""
        super().__init__(path, offset, reason, "a newer version of sealog is needed to read it")


_REPAIR_ADVICE = (
    "nothing was changed; `sealog verify` lists the damage, `sealog repair` writes a salvaged copy"
)


class CorruptionError(FormatError):
    """Acknowledged data is damaged or gone; nothing was touched. `position`: the first event concerned."""

    def __init__(
        self, path: str, offset: int, position: int, reason: str, advice: str = _REPAIR_ADVICE
    ) -> None:
        """Name the file, the byte offset, the event position and what was found."""
        super().__init__(path, offset, f"{reason} (event {position})", advice)
        self.position = position


class AttachmentMissingError(SealogError, FileNotFoundError):
    """No attachment can be read at that position."""

    _errno = errno.ENOENT

    def __init__(self, session_id: str, position: int, path: str, reason: str) -> None:
        """Name the session, the position, the file and the reason."""
        super().__init__(f"session {session_id!r}: no attachment at position {position}: {reason} ({path})")
        self.session_id = session_id
        self.position = position
        self.path = path
        self.reason = reason


class AttachmentCorruptError(SealogError, ValueError):
    """The attachment's bytes are not those that were attached."""

    def __init__(self, session_id: str, position: int, path: str, reason: str) -> None:
        """Name the session, the position, the file and what differs."""
        super().__init__(
            f"session {session_id!r}: attachment {path} of position {position} is damaged: {reason}; "
            "restore the file from a backup"
        )
        self.session_id = session_id
        self.position = position
        self.path = path
        self.reason = reason


class MailboxFullError(SealogError, TimeoutError):
    """The session did not take the request in time; it was withdrawn and is certainly not written."""

    _errno = errno.ETIMEDOUT

    def __init__(self, session_id: str, reason: str) -> None:
        """Name the session and what was full or slow."""
        super().__init__(f"session {session_id!r}: {reason}; nothing was written, try again later")
        self.session_id = session_id
        self.reason = reason


class AppendOutcomeUnknownError(SealogError, TimeoutError):
    """The append may be on disk or not.

    `positions` is the range it would have, None if it had none yet; `future` (None after a fault) resolves
    once the outcome is known. Repeat the call with the same `key` to get exactly one event.
    """

    _errno = errno.ETIMEDOUT

    def __init__(
        self,
        session_id: str,
        reason: str,
        positions: Sequence[int] | None = None,
        future: Future[Any] | None = None,
    ) -> None:
        """Name the session, why nothing more is known, and what is known."""
        super().__init__(
            f"session {session_id!r}: {reason}; the events may or may not be stored: "
            "repeat the call with the same key, or look at the log"
        )
        self.session_id = session_id
        self.reason = reason
        self.positions = positions
        self.future = future


class StorageFullError(SealogError, OSError):
    """The disk, the quota or the file-size limit is exhausted; certainly not written, the session lives."""

    def __init__(self, session_id: str, path: str, code: int) -> None:
        """Name the session, the file and the errno (ENOSPC, EDQUOT or EFBIG)."""
        self._errno = code
        super().__init__(
            f"session {session_id!r}: {path} cannot grow ({errno.errorcode.get(code, code)}); "
            "nothing was written, free some space and append again"
        )
        self.session_id = session_id
        self.path = path


class FeatureNotFoundError(SealogError, LookupError):
    """No feature of the session has that id; nothing was written."""

    def __init__(self, session_id: str, feature_id: str) -> None:
        """Name the session and the feature that was asked for."""
        super().__init__(
            f"feature {feature_id!r} not found in session {session_id!r}; load_bootstrap_state() lists them"
        )
        self.session_id = session_id
        self.feature_id = feature_id


class InvalidStateError(SealogError, ValueError):
    """A state is not what it must be: nothing of its file was imported. `field` says where."""

    def __init__(self, file: str, field: str, reason: str) -> None:
        """Name the file, the field in it and what is wrong there."""
        super().__init__(f"{file}: {field}: {reason}")
        self.file = file
        self.field = field
        self.reason = reason
