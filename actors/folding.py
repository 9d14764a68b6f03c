"""Folding events into the state of a projection: incremental, cached by session, checkpointed.

A cached fold or a checkpoint is only ever a shortcut: whatever does not fit the log is dropped, and the
events are folded again from the start.
"""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from ..storage.checkpoints import checkpoint_of, read_checkpoint, write_checkpoint

if TYPE_CHECKING:
    from ..storage.format import Head
    from ..storage.reader import LogView
    from .projection import Projection
    from .slot import Slot

S = TypeVar("S")

CHECKPOINT_MIN_EVENTS: Final = 1000
CHECKPOINT_GROWTH: Final = 8
"""A checkpoint is rewritten when the log has grown by an eighth, so that rewriting stays linear in all."""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[int, bytes]).decode

logger = logging.getLogger("sealog")


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
        self._state: S | None = None
        self._position: int | None = None
        self._checkpointed = 0

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
                self._state = self._position = None  # apply may have changed the state half-way
                raise
            finally:
                self._folding = None

    def _advance(self, slot: Slot) -> Any:
        projection = self._projection
        with slot.reading() as (view, head, _, _):
            if self._position is None:
                self._start(slot, view, head)
            state, position = self._state, self._position or 0
            if position < head.position:
                kinds = projection.kinds
                for event in view.events(position, head.position, head):
                    if kinds is None or event.kind in kinds:
                        state = projection.apply(state, event)  # type: ignore[arg-type]
                self._state, self._position = state, head.position
                if slot.is_open and head.position - self._checkpointed >= max(
                    CHECKPOINT_MIN_EVENTS, head.position // CHECKPOINT_GROWTH
                ):
                    self._write_checkpoint(slot, view, head)
        return state

    def _start(self, slot: Slot, view: LogView, head: Head) -> None:
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
                    self._position = self._checkpointed = checkpoint.position
                    return
            except ValueError as error:
                logger.info("session %s: %s dropped: %s", slot.session_id, self._file, error)
        self._state, self._position, self._checkpointed = self._projection.initial(), 0, 0

    def _write_checkpoint(self, slot: Slot, view: LogView, head: Head) -> None:
        body = _encode((self._projection.version, self._projection.save(self._state)))  # type: ignore[arg-type]
        directory = slot.open_directory()
        try:
            if write_checkpoint(
                directory, self._file, checkpoint_of(view.keys, view.frame_before(head), body)
            ):
                self._checkpointed = head.position
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
