"""Idempotency keys: the same key with the same content is stored once, for the life of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage.errors import KeyConflictError
from ..storage.events import canonical_content, decode_body
from ..storage.keys import KeyIndex

if TYPE_CHECKING:
    from ..storage.events import Event
    from ..storage.log import Log
    from ..storage.vfs import Directory
    from .requests import AppendRequest
    from .slot import Slot
    from .writer import Group

KEYS_CHECKPOINT: Final = "keys"
CHECKPOINT_MIN_EVENTS: Final = 1024
CHECKPOINT_GROWTH: Final = 8
"""The checkpoint is rewritten when the log has grown by an eighth, so that rewriting stays linear in all."""


class KeyBook:
    """The keys of one open log. The index is built when the first key is asked for."""

    def __init__(self, slot: Slot, log: Log) -> None:
        self._slot = slot
        self._log = log
        self._index: KeyIndex | None = None
        self._checkpointed = 0
        self._frame: tuple[int, list[Event]] = (
            0,
            [],
        )  # the last one that was decoded, while one batch is looked up

    def find(self, group: Group, request: AppendRequest) -> int | None:
        """Return the first position of a batch that is known already, None if none of its keys is.

        Raises:
            KeyConflictError: a key is known with other content, or only a part of the batch is known.
        """
        try:
            return self._find(group, request)
        finally:
            self._frame = (0, [])

    def _find(self, group: Group, request: AppendRequest) -> int | None:
        keys = request.keys or ()
        found: dict[int, int] = {}
        seen: set[str] = set()
        for at, key in enumerate(keys):
            if key is None:
                continue
            if key in seen:
                raise self._conflict(key, None, "stands twice in one batch")
            seen.add(key)
            position = self._position(group, key)
            if position is not None:
                found[at] = position
        if not found:
            return None
        at, position = next(iter(found.items()))
        first = position - at
        for index, key in enumerate(keys):
            if key is not None and found.get(index) != first + index:
                raise self._conflict(
                    key,
                    found.get(index),
                    "belongs to a batch of which only a part is known, or in another order",
                )
        self._compare(group, request, first, keys[at] or "", position)
        return first

    def _compare(
        self, group: Group, request: AppendRequest, first: int, known_key: str, known_position: int
    ) -> None:
        for index, body in enumerate(request.bodies):
            here = first + index
            stored = self._event(group, here)
            if stored is not None and canonical_content(stored) == canonical_content(decode_body(body)):
                continue
            key = (request.keys or ())[index]
            if key is None:
                reason = f"is known, but position {here} does not hold the event that stands with it here"
                raise self._conflict(known_key, known_position, reason)
            raise self._conflict(key, here, f"is known at position {here} with other content")

    def _event(self, group: Group, position: int) -> Event | None:
        if position < 0 or position >= group.next_position:
            return None
        if position >= group.head.position:
            return decode_body(group.bodies[position - group.head.position])
        return self._stored(position)

    def _stored(self, position: int) -> Event:
        """Read an event; the frame it stands in is decoded once for all of a batch."""
        first, events = self._frame
        if not first <= position < first + len(events):
            self._frame = first, events = self._log.view.frame_at(position, self._log.head)
        return events[position - first]

    def _position(self, group: Group, key: str) -> int | None:
        in_flight = group.keys.get(key)
        if in_flight is not None:
            return in_flight
        for position in self._load().find(key):
            if self._stored(position).key == key:
                return position
        return None

    def _conflict(self, key: str, position: int | None, reason: str) -> KeyConflictError:
        return KeyConflictError(self._log.session_id, key, position, reason)

    def _load(self) -> KeyIndex:
        """Return the index, complete up to the head."""
        index = self._index
        if index is None:
            index = self._read_checkpoint() or KeyIndex()
            self._checkpointed = index.covered
        head = self._log.head
        if index.covered < head.position:
            for position, key in self._log.view.keys_from(index.covered, head):
                index.add(key, position)
            index.covered = head.position
        self._index = index
        return index

    def _read_checkpoint(self) -> KeyIndex | None:
        directory = self._slot.open_directory()
        try:
            checkpoint = self._log.read_derived(directory, KEYS_CHECKPOINT)
        finally:
            directory.close()
        if checkpoint is None:
            return None
        try:
            return KeyIndex.from_bytes(checkpoint.body, checkpoint.position)
        except ValueError:
            return None

    def committed(self, group: Group) -> None:
        """Note the keys of a commit."""
        index = self._index
        if index is not None:
            for key, position in group.keys.items():
                index.add(key, position)
            index.covered = self._log.head.position

    def write_checkpoint(self, directory: Directory) -> None:
        """Write the index, if it is there and the next opening would miss much of it."""
        index = self._index
        if index is None or not len(index):
            return
        grown = index.covered - self._checkpointed
        if (
            grown >= max(CHECKPOINT_MIN_EVENTS, index.covered // CHECKPOINT_GROWTH)
            and index.covered == self._log.head.position
            and self._log.write_derived(directory, KEYS_CHECKPOINT, index.to_bytes())
        ):
            self._checkpointed = index.covered
