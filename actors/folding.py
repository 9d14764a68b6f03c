"""Folding events into the state of a projection: incremental, cached by session, checkpointed.

A cached fold or a checkpoint is only ever a shortcut: whatever does not fit the log is dropped, and the
events are folded again from the start.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from ..storage.checkpoints import checkpoint_of, read_checkpoint, write_checkpoint
from ..storage.errors import CorruptionError
from ..storage.format import FILE_HEADER_SIZE, Head, first_previous

if TYPE_CHECKING:
    from ..storage.reader import LogView
    from .projection import Projection
    from .slot import Slot

S = TypeVar("S")

CHECKPOINT_MIN_EVENTS: Final = 1000
CHECKPOINT_COST: Final = 2
"""A checkpoint of n bytes is rewritten when the log has grown by half of that, and by 1000 events.

So what follows it stays short next to it, for a state that is bounded as for one that grows with the log, and
rewriting stays linear in all.
"""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[int, bytes]).decode

logger = logging.getLogger("sealog")


class Folded(NamedTuple):
    """How far a fold has come: the salt of the log and the head up to which its events are in the state."""

    salt: bytes
    head: Head

    def fits(self, view: LogView, head: Head) -> bool:
        """Tell whether a log may be the one that was folded; the frame behind it has the last word."""
        mine = self.head
        return self.salt == view.keys.salt and (mine == head or mine.end < head.end)


class Fold(Generic[S]):
    """The state of one projection of one session, up to some position."""

    def __init__(self, projection: Projection[S]) -> None:
        if not _NAME.fullmatch(projection.name):
            msg = f"a projection's name is 1-100 letters, digits, '_', '.' and '-', not {projection.name!r}"
            raise ValueError(msg)
        self._projection = projection
        self._file = f"projection-{projection.name}"
        self._lock = threading.Lock()
        self._folding: int | None = None
        self._state: Any = None
        self._folded: Folded | None = None
        self._checkpointed: Head | None = None
        self._checkpoint_bytes = 0

    @property
    def is_folding_here(self) -> bool:
        """Whether this thread is inside `apply` of this very fold."""
        return self._folding == threading.get_ident()

    def advance(self, slot: Slot) -> S:
        """Fold what is durable now and not folded yet; return what may be handed out.

        Raises:
            CorruptionError: an event is damaged.
            Exception: what the projection raises; what was folded is forgotten then.
        """
        with self._lock:
            self._folding = threading.get_ident()
            try:
                return self._projection.view(self._advance(slot))
            except BaseException:
                self._forget()  # apply may have changed the state half-way
                raise
            finally:
                self._folding = None

    def _forget(self) -> None:
        self._state = self._folded = self._checkpointed = None
        self._checkpoint_bytes = 0

    def _advance(self, slot: Slot) -> Any:
        with slot.reading() as (view, head, _, _):
            if self._folded is not None and self._folded.fits(view, head):
                try:
                    return self._fold(slot, view, head)
                except CorruptionError:  # perhaps only against what was folded: an older copy was put back
                    logger.info("session %s: %s is folded again", slot.session_id, self._file)
            self._forget()
            self._start(slot, view, head)
            return self._fold(slot, view, head)

    def _fold(self, slot: Slot, view: LogView, head: Head) -> Any:
        projection, state, folded = self._projection, self._state, self._folded
        if folded is not None and folded.head.end < head.end:
            kinds = projection.kinds
            for event in view.events_after(folded.head, head):
                if kinds is None or event.kind in kinds:
                    state = projection.apply(state, event)
            self._state, self._folded = state, Folded(view.keys.salt, head)
            if slot.is_open and self._checkpoint_due(head):
                self._write_checkpoint(slot, view, head)
        return state

    def _start(self, slot: Slot, view: LogView, head: Head) -> None:
        """Begin at the checkpoint if it fits the log, else at the start of the log."""
        directory = slot.open_directory()
        try:
            checkpoint = read_checkpoint(directory, self._file, view.keys)
        finally:
            directory.close()
        if checkpoint is not None and checkpoint.end <= head.end and view.holds(checkpoint):
            try:
                version, saved = _decode(checkpoint.body)
                if version == self._projection.version:
                    self._state = self._projection.load(saved)
                    self._folded = Folded(view.keys.salt, checkpoint.head)
                    self._checkpointed, self._checkpoint_bytes = checkpoint.head, len(checkpoint.body)
                    return
            except ValueError as error:
                logger.info("session %s: %s dropped: %s", slot.session_id, self._file, error)
        self._state = self._projection.initial()
        self._folded = Folded(view.keys.salt, Head(FILE_HEADER_SIZE, 0, first_previous(view.keys)))

    def _checkpoint_due(self, head: Head) -> bool:
        done = self._checkpointed or Head(0, 0, 0)
        return (
            head.position - done.position >= CHECKPOINT_MIN_EVENTS
            and (head.end - done.end) * CHECKPOINT_COST >= self._checkpoint_bytes
        )

    def _write_checkpoint(self, slot: Slot, view: LogView, head: Head) -> None:
        body = _encode((self._projection.version, self._projection.save(self._state)))
        directory = slot.open_directory()
        try:
            if write_checkpoint(
                directory, self._file, checkpoint_of(view.keys, view.frame_before(head), body)
            ):
                self._checkpointed, self._checkpoint_bytes = head, len(body)
        finally:
            directory.close()


def project(slot: Slot, projection: Projection[S]) -> S:
    """Return the state of a projection over all events that are durable now.

    Raises:
        ValueError: the projection's name cannot be one of a file.
        CorruptionError: an event is damaged.
        Exception: what the projection raises.
    """
    fold: Fold[S] = slot.fold(projection, lambda: Fold(projection))
    if fold.is_folding_here:  # apply asks for its own state: it gets a fold of its own
        fold = Fold(projection)
    return fold.advance(slot)
