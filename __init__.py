"""Durable, append-only session logs for AI agents.

    import sealog

    with sealog.open("sessions") as store:
        session = store.create_session("agent-1", labels={"title": "first try"})
        session.append("user-message", "hello")          # returns when it is on disk
        for event in session.events():
            print(event.kind, event.text)

A store is a folder, a session is an ordered log of events in it, with files attached. `sealog.open` gives a
`Store`, which gives `Session` handles for any number of threads. Errors are one tree under `SealogError`.
"""

from __future__ import annotations

import logging as _logging
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from .actors.describing import SessionInfo
from .actors.projection import Projection
from .actors.sealing import SealedSession
from .actors.session import Session
from .actors.store import Store, StoreStats
from .actors.store import open_store as open
from .actors.subscription import Subscription
from .storage.attachments import Attachment
from .storage.errors import (
    AppendOutcomeUnknownError,
    AttachmentCorruptError,
    AttachmentMissingError,
    BlockingCallError,
    CorruptionError,
    FeatureNotFoundError,
    FormatError,
    InvalidEventError,
    InvalidHeaderError,
    InvalidSessionIdError,
    InvalidStateError,
    KeyConflictError,
    LimitExceededError,
    MailboxFullError,
    PositionConflictError,
    SealogError,
    SessionDeletedError,
    SessionExistsError,
    SessionFailedError,
    SessionLockedError,
    SessionNotFoundError,
    SessionNotSealedError,
    SessionSealedError,
    StorageFullError,
    StoreClosedError,
    StoreNotFoundError,
    StoreReadOnlyError,
    UpgradeRequiredError,
)
from .storage.events import Event, Role
from .storage.format import Receipt, SessionHeader
from .storage.recovery import RecoveryReport
from .storage.repair import Gap, RepairReport
from .storage.verify import VerifyReport

try:
    __version__ = _version("sealog")
except _PackageNotFoundError:  # run from a tree that was not installed
    __version__ = "0+unknown"

_logging.getLogger("sealog").addHandler(_logging.NullHandler())

__all__ = [
    "AppendOutcomeUnknownError",
    "Attachment",
    "AttachmentCorruptError",
    "AttachmentMissingError",
    "BlockingCallError",
    "CorruptionError",
    "Event",
    "FeatureNotFoundError",
    "FormatError",
    "Gap",
    "InvalidEventError",
    "InvalidHeaderError",
    "InvalidSessionIdError",
    "InvalidStateError",
    "KeyConflictError",
    "LimitExceededError",
    "MailboxFullError",
    "PositionConflictError",
    "Projection",
    "Receipt",
    "RecoveryReport",
    "RepairReport",
    "Role",
    "SealedSession",
    "SealogError",
    "Session",
    "SessionDeletedError",
    "SessionExistsError",
    "SessionFailedError",
    "SessionHeader",
    "SessionInfo",
    "SessionLockedError",
    "SessionNotFoundError",
    "SessionNotSealedError",
    "SessionSealedError",
    "StorageFullError",
    "Store",
    "StoreClosedError",
    "StoreNotFoundError",
    "StoreReadOnlyError",
    "StoreStats",
    "Subscription",
    "UpgradeRequiredError",
    "VerifyReport",
    "__version__",
    "open",
]
