"""The reading half of session handles: it needs no actor and never waits for writers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar, overload

import msgspec

from ..storage.attachments import Attachment
from ..storage.errors import AttachmentMissingError, StoreClosedError
from .folding import project
from .subscription import Follower, Subscription

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from ..storage.events import Event
    from ..storage.format import Receipt, SessionHeader
    from ..storage.recovery import RecoveryReport
    from .mailbox import Wakeable
    from .projection import Projection
    from .runtime import Runtime
    from .slot import Slot

S = TypeVar("S")


class ReadableSession:
    """A handle that reads one session. `len(session)` is the number of events, `session[i]` reads one."""

    __slots__ = ("__weakref__", "_closed", "_pinned", "_runtime", "_slot", "_store")

    def __init__(self, store: object, runtime: Runtime, slot: Slot) -> None:
        self._store = store  # keeps the store's handle alive for as long as this one is used
        self._runtime = runtime
        self._slot = slot
        self._pinned = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<sealog.{type(self).__name__} {self._slot.session_id!r} of {self._runtime.path}>"

    def __reduce__(self) -> NoReturn:
        msg = "a session handle belongs to its process; send the session id and open it there"
        raise TypeError(msg)

    def _check(self) -> None:
        if self._closed:
            raise StoreClosedError(
                self._runtime.path,
                f"is open, but this handle of session {self._slot.session_id!r} was closed",
            )
        self._runtime.check()

    # -- attachments

    def read_attachment(self, position: int) -> Attachment:
        """Return the attachment of the event at `position`; its bytes are verified when read.

        Raises:
            AttachmentMissingError: there is no event, or no attachment, at that position.
            CorruptionError: the event is damaged.
        """
        self._check()
        slot = self._slot
        with slot.reading() as (view, head, _, _):
            if not 0 <= position < head.position:
                raise AttachmentMissingError(
                    slot.session_id, position, slot.path, f"the session has {head.position} events"
                )
            event = next(view.events(position, position + 1, head))
        return Attachment(slot.session_id, slot.path, position, event, slot.open_directory)

    def attachments(self) -> Iterator[Attachment]:
        """Iterate over all attachments, in order.

        Raises:
            CorruptionError: an event is damaged.
        """
        slot = self._slot
        for position, event in enumerate(self.events()):
            if event.kind == "attachment":
                yield Attachment(slot.session_id, slot.path, position, event, slot.open_directory)

    # -- reading

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        """Iterate over durable events, streaming; reading never waits for writers.

        Args:
            start: first position.
            stop: position to stop before; the end at the time of the first step if left out.

        Raises:
            ValueError: a negative position.
            CorruptionError: an event is damaged or gone.
            SessionNotFoundError, SessionDeletedError: the session is gone.
        """
        if start < 0 or (stop is not None and stop < 0):
            msg = f"positions are 0 or more, not {start} and {stop}; use tail(n) or session[-n:]"
            raise ValueError(msg)
        self._check()
        return self._events(start, stop)

    def _events(self, start: int, stop: int | None) -> Iterator[Event]:
        with self._slot.reading() as (view, head, _, _):
            end = head.position if stop is None else min(stop, head.position)
            if start < end:
                yield from view.events(start, end, head)

    def __len__(self) -> int:
        self._check()
        with self._slot.reading() as (_, head, _, _):
            return head.position

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        self._check()
        with self._slot.reading() as (view, head, _, _):
            if isinstance(index, slice):
                start, stop, step = index.indices(head.position)
                if step > 0:
                    return list(view.events(start, stop, head))[::step] if start < stop else []
                low, high = stop + 1, start + 1
                return list(view.events(low, high, head))[::step] if low < high else []
            position = index + head.position if index < 0 else index
            if not 0 <= position < head.position:
                msg = f"session {self._slot.session_id!r} has {head.position} events, none at {index}"
                raise IndexError(msg)
            return next(view.events(position, position + 1, head))

    def tail(self, n: int) -> list[Event]:
        """Return the last `n` events, or all if there are fewer; the cost depends on `n` only.

        Raises:
            ValueError: `n` is negative.
            CorruptionError: an event is damaged.
        """
        if n < 0:
            msg = f"tail of {n} events"
            raise ValueError(msg)
        self._check()
        with self._slot.reading() as (view, head, _, _):
            start = max(head.position - n, 0)
            return list(view.events(start, head.position, head)) if start < head.position else []

    def subscribe(self, start: int = 0) -> Subscription:
        """Follow the session from `start` on: what is there, then what is appended, by whatever process.

        Raises:
            ValueError: a negative position.
        """
        return Subscription(partial(self.follow, start))

    def follow(self, start: int, signal: Wakeable) -> Follower:
        """Return the position of a subscription: what `subscribe` and `sealog.aio` are made of.

        Args:
            start: the first position.
            signal: set when there may be more.

        Raises:
            ValueError: a negative position.
        """
        if start < 0:
            msg = f"positions are 0 or more, not {start}"
            raise ValueError(msg)
        self._check()
        return Follower(self._runtime, self._slot, start, signal)

    def project(self, projection: Projection[S]) -> S:
        """Return the state of a projection over all durable events, folded in this thread.

        Only events that were not folded before are read: what was is cached with the session, and in
        checkpoints across processes. The state is the caller's own, or immutable.

        Raises:
            ValueError: the projection's name cannot be that of a file.
            CorruptionError: an event is damaged.
            Exception: whatever the projection raises; neither the session nor other callers are affected.
        """
        self._check()
        return project(self._slot, projection)

    # -- what it is

    @property
    def is_sealed(self) -> bool:
        """Whether the session is sealed."""
        return self._receipt() is not None

    def _receipt(self) -> Receipt | None:
        self._check()
        with self._slot.reading() as (_, _, receipt, _):
            return receipt

    @property
    def header(self) -> SessionHeader:
        """What the session was created with."""
        self._check()
        header = self._slot.header
        if header is None:
            with self._slot.reading() as (_, _, _, header):
                pass
        return msgspec.structs.replace(header, labels=dict(header.labels))

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._slot.session_id

    @property
    def path(self) -> str:
        """The session's directory."""
        return self._slot.path

    @property
    def recovered(self) -> RecoveryReport | None:
        """What opening it in this process had to repair; None if it was clean."""
        report = self._slot.recovered
        if report is None or (report.status == "clean" and not report.leftovers):
            return None
        return report

    # -- the handle

    def close(self) -> None:
        """Give up the handle; the session stays as it is. Closing twice is closing once."""
        self._closed = True
        if self._pinned:
            self._pinned = False
            self._slot.unpin()

    def __enter__(self) -> Self:
        self._check()
        if not self._pinned:
            self._pinned = True
            self._slot.pin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pinned", False):
            self._slot.unpin()
