"""Which session keeps what belongs to a key of somebody else's: any string, mapped to a session id.

A key that could be an id is used as it is, so that people find its session; every other one is encoded in
what no file system folds, trims or takes for a path. Each owner has ids of its own, and the labels of a
session say whose it is and for which key: one that says otherwise is never used.

    k--acp-s1         key "s1" of the owner "acp"
    s1                key "s1" of the harness, which has no prefix
    k--oexq           key "q/" of the harness: base32 of its UTF-8
    k--h-9f86d081…    a key that would take more than 200 characters: its SHA-256
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..storage.errors import (
    InvalidHeaderError,
    LimitExceededError,
    SealogError,
    SessionDeletedError,
    SessionExistsError,
    SessionNotFoundError,
)
from ..storage.events import encode_batch
from ..storage.format import PAYLOAD_SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..actors.projection import Projection
    from ..actors.session import Session
    from ..actors.store import Store
    from ..storage.events import Event

ENCODED: Final = "k--"
NAME_CHARACTERS_MAX: Final = 200
_PLAIN: Final = re.compile(r"(?!k--)[a-z0-9_-]{1,200}", re.ASCII)
_OWNER: Final = re.compile(r"[a-z0-9]{2,40}", re.ASCII)
_RACES_MAX: Final = 100
FOLD_EVERY_EVENTS: Final = 1000

logger = logging.getLogger("sealog")


def encode_key(key: str) -> str:
    """Return the name of a key: another one for every other key, at most 200 of `[a-z0-9_-]`.

    Raises:
        InvalidHeaderError: the key is not text.
    """
    if not isinstance(key, str):
        raise InvalidHeaderError(repr(key), "its key", f"must be a str, not {type(key).__name__}")
    if _PLAIN.fullmatch(key):
        return key
    try:
        data = key.encode()
    except UnicodeEncodeError:
        raise InvalidHeaderError(
            repr(key), "its key", "has a lone surrogate, which is not Unicode text"
        ) from None
    name = ENCODED + base64.b32encode(data).decode().rstrip("=").lower()
    return name if len(name) <= NAME_CHARACTERS_MAX else f"{ENCODED}h-{hashlib.sha256(data).hexdigest()}"


def keep_folded(session: Session, appended: range, fold: Projection[Any]) -> None:
    """Fold after every 1000th event of a session, so that a checkpoint is never far behind.

    What goes wrong is for the next one who asks for the state: these events are stored.
    """
    if appended.stop // FOLD_EVERY_EVENTS != appended.start // FOLD_EVERY_EVENTS:
        try:
            session.project(fold)
        except (SealogError, OSError) as error:
            logger.info("session %s: not folded: %s", session.session_id, error)


class KeySpace(msgspec.Struct, frozen=True):
    """The sessions of one owner, by key.

    Args:
        owner: 2–40 of `[a-z0-9]`, also the label of its sessions.
        has_prefix: whether its ids start with `k--<owner>-`; only one owner in all may do without.
    """

    owner: str
    has_prefix: bool = True

    def __post_init__(self) -> None:
        """Check the owner's name, which keeps its ids apart from those of others.

        Raises:
            ValueError: it is no such name.
        """
        if not _OWNER.fullmatch(self.owner):
            msg = f"an owner is 2 to 40 characters of a-z and 0-9, not {self.owner!r}"
            raise ValueError(msg)

    def session_id(self, key: str) -> str:
        """Return the id of a key's session, whether there is one or not.

        Raises:
            InvalidHeaderError: the key is not text.
        """
        return f"{ENCODED}{self.owner}-{encode_key(key)}" if self.has_prefix else encode_key(key)

    def labels(self, key: str) -> dict[str, str]:
        """Return the labels that its session is made with."""
        return {"key": key, "owner": self.owner}

    def find(self, store: Store, key: str) -> Session | None:
        """Open the session of a key; None if there is none.

        Raises:
            InvalidHeaderError: the key is not text.
            SessionExistsError: a session of that id belongs to somebody else.
            Everything else that `store.open_session` raises.
        """
        try:
            session = store.open_session(self.session_id(key))
            labels = session.header.labels
        except (SessionNotFoundError, SessionDeletedError):
            return None
        if any(labels.get(name) != value for name, value in self.labels(key).items()):
            raise SessionExistsError(session.session_id, session.path)
        return session

    def open(self, store: Store, key: str) -> Session:
        """Open the session of a key, and make it first if there is none.

        Raises:
            InvalidHeaderError: the key is not text, or over 64 KiB of it.
            SessionExistsError: a session of that id belongs to somebody else.
            Everything else that `store.open_session` and `store.create_session` raise.
        """
        attempts = 0
        while True:
            session = self.find(store, key)
            if session is not None:
                return session
            try:
                return store.create_session(self.session_id(key), labels=self.labels(key))
            except SessionExistsError:
                attempts += 1
                if attempts == _RACES_MAX:  # no race: what stands there is no session
                    raise

    def open_for(self, store: Store, key: str, events: Sequence[Event]) -> Session:
        """Open the session of a key for a batch; it is not made if the batch cannot be stored.

        Raises:
            InvalidEventError, LimitExceededError: the batch cannot be stored.
            Everything that `open` raises.
        """
        session = self.find(store, key)
        if session is None:
            size = sum(map(len, encode_batch(events, 0)[0]))
            if size > PAYLOAD_SIZE_MAX:
                raise LimitExceededError(
                    "bytes of one batch", PAYLOAD_SIZE_MAX, size, "split it into several calls"
                )
            session = self.open(store, key)
        return session

    def append(self, store: Store, key: str, events: Sequence[Event], fold: Projection[Any]) -> None:
        """Append to the session of a key; it is made first if there is none and the events can be stored.

        Args:
            store: where.
            key: whose session.
            events: one batch; none only make the session.
            fold: the projection to keep up to date, so that it never has much to catch up on.

        Raises:
            Everything that `open` and `session.append_many` raise.
        """
        session = self.open_for(store, key, events)
        keep_folded(session, session.append_many(events), fold)

    def keys(self, store: Store) -> Iterator[str]:
        """Iterate over the keys that have a session, in the order of the ids; damaged ones are left out.

        Raises:
            StoreClosedError: the store is closed.
        """
        for session_id in store.session_ids():
            try:
                labels = store.describe(session_id).labels
            except SessionNotFoundError:
                continue
            key = labels.get("key")
            if labels.get("owner") == self.owner and key is not None and self.session_id(key) == session_id:
                yield key
