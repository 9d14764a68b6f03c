"""Sealing: what the caller proves first, and what a sealed session is to those who read it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ..storage.attachments import Attachment
from ..storage.errors import SessionNotSealedError
from ..storage.vfs import pieces
from .readable import ReadableSession
from .requests import OneShot, SealRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..storage.format import Receipt
    from .slot import Slot


def seal(slot: Slot, submit: Callable[[SealRequest], Any]) -> Receipt:
    """Verify all attachments and hash the log in this thread, then have the owner seal it.

    The owner seals only if no attachment came meanwhile that was not verified here; else this goes on.

    Args:
        slot: the session, pinned.
        submit: has a request carried out.

    Raises:
        AttachmentMissingError, AttachmentCorruptError: an attachment is not what was attached.
        SealogError: what `submit` raises.
    """
    verified = hashed_end = 0
    digest = hashlib.sha256()
    while True:
        with slot.reading() as (view, head, receipt, _):
            if receipt is not None:
                return receipt
            for position, event in enumerate(view.events(verified, head.position, head), verified):
                if event.kind == "attachment":
                    Attachment(slot.session_id, slot.path, position, event, slot.open_directory).verify()
            for piece in pieces(view.shared.file, hashed_end, head.end):
                digest.update(piece)
            verified, hashed_end = head.position, head.end
        sealed: Receipt | None = submit(SealRequest(digest, hashed_end, verified, OneShot()))
        if sealed is not None:
            return sealed


class SealedSession(ReadableSession):
    """A sealed session, read lazily: its header, its receipt, its events and attachments."""

    __slots__ = ()

    @property
    def receipt(self) -> Receipt:
        """Number of events, digest of the last frame, SHA-256 of the log before the seal.

        Raises:
            CorruptionError: the seal is damaged.
            SessionDeletedError, SessionNotFoundError: the session is gone.
        """
        receipt = self._receipt()
        if receipt is None:
            raise SessionNotSealedError(self.session_id, "read as a sealed one")
        return receipt
