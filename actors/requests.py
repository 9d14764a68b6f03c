"""What callers ask of a session, and how each is answered exactly once."""

from __future__ import annotations

import _thread
import contextlib
import logging
import operator
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from ..storage.errors import InvalidEventError, LimitExceededError
from ..storage.events import check_not_attachment, encode_batch, encode_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..storage.attachments import Stage
    from ..storage.events import Event
    from ..storage.log import Hash

logger = logging.getLogger("sealog")


class Signal:
    """A binary semaphore: one waits, others set. A raw lock, since a commit wakes many at once."""

    __slots__ = ("_acquire", "_release")

    def __init__(self) -> None:
        lock = _thread.allocate_lock()
        lock.acquire()
        self._acquire = lock.acquire
        self._release = lock.release

    def set(self) -> None:
        """Wake the waiter, now or when it comes. Setting twice is setting once."""
        try:  # noqa: SIM105 — `suppress` would take longer than all the rest
            self._release()
        except RuntimeError:
            pass

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait to be set; False if the time ran out."""
        if timeout_s is None:
            return self._acquire()
        # max with 0 first, which NaN loses; a lock refuses to wait longer than TIMEOUT_MAX
        timeout_s = min(max(0, timeout_s), threading.TIMEOUT_MAX)
        return self._acquire(True, timeout_s)  # noqa: FBT003 — the lock's own argument


class _Condition(threading.Condition):
    """A condition that is entered and left in C: an interrupt cannot leave it locked for the actor."""

    if not TYPE_CHECKING:
        __enter__ = property(operator.attrgetter("_lock.__enter__"))
        __exit__ = property(operator.attrgetter("_lock.__exit__"))


class ReplyFuture(Future[Any]):
    """A future that the actor resolves: whatever a callback raises stays with the callback."""

    def __init__(self) -> None:
        super().__init__()
        self._condition = _Condition()

    def start(self) -> bool:
        """Claim the request for a commit; False if it was cancelled."""
        try:
            return self.set_running_or_notify_cancel()
        except RuntimeError:  # its holder resolved it, which is ours to do: nobody waits for an answer
            return False

    def succeed(self, value: Any) -> None:
        """Resolve, unless that was done."""
        with contextlib.suppress(BaseException):
            self.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Resolve with an error, unless that was done."""
        with contextlib.suppress(BaseException):
            self.set_exception(error)

    if not TYPE_CHECKING:  # a method that type checkers do not know

        def _invoke_callbacks(self) -> None:
            if self.cancelled():  # on the thread of its holder, whose interrupts are not ours to keep
                super()._invoke_callbacks()
                return
            for callback in self._done_callbacks:
                try:
                    callback(self)
                except BaseException:  # the standard library skips the rest of them then
                    logger.exception("a callback of a future raised")


class OneShot:
    """The reply of a blocking call: lighter than a future, which it becomes if the caller stops waiting."""

    __slots__ = ("_error", "_future", "_signal", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._signal = Signal()
        self._future: ReplyFuture | None = None

    def start(self) -> bool:
        """Claim the request for a commit; a blocking call cannot be cancelled."""
        return True

    def succeed(self, value: Any) -> None:
        """Answer, unless that was done."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless that was done."""
        if not self.done:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self.done = True
        self._signal.set()
        if self._future is not None:
            self._resolve(self._future)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the answer; False if the time ran out."""
        while not self.done:
            if not self._signal.wait(timeout_s) and not self.done:
                return False
        return True

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._value

    def to_future(self) -> ReplyFuture:
        """Return a future for the answer that the caller does not wait for any more."""
        future = ReplyFuture()
        future.set_running_or_notify_cancel()
        self._future = future
        if self.done:  # the actor may have looked for a future just before: resolving twice is harmless
            self._resolve(future)
        return future

    def _resolve(self, future: ReplyFuture) -> None:
        if self._error is None:
            future.succeed(self._value)
        else:
            future.fail(self._error)


class Reply(Protocol):
    """Where an answer goes."""

    def start(self) -> bool:
        """Claim the request for a commit; False if its caller has cancelled it."""
        ...

    def succeed(self, value: Any) -> None:
        """Answer, unless that was done."""
        ...

    def fail(self, error: BaseException) -> None:
        """Answer with an error, unless that was done."""
        ...


class AppendRequest:
    """One caller's batch: it gets consecutive positions and is never split over two commits.

    Attributes:
        bodies: the encoded events.
        keys: of each event, None if no event has one.
        expected: the position that the first event must get.
        single: answer with a position, and not with a range.
        stage: the file of an attachment, which the one event describes.
        size_bytes: of the bodies.
        reply: where the answer goes.
        first_position: once it has one.
    """

    __slots__ = ("bodies", "expected", "first_position", "keys", "reply", "single", "size_bytes", "stage")

    def __init__(
        self,
        bodies: Sequence[bytes],
        keys: Sequence[str | None] | None,
        expected: int | None,
        reply: Reply,
        *,
        single: bool,
        stage: Stage | None = None,
    ) -> None:
        self.bodies = bodies
        self.keys = keys
        self.expected = expected
        self.reply = reply
        self.single = single
        self.stage = stage
        self.size_bytes = len(bodies[0]) if single else sum(map(len, bodies))
        self.first_position: int | None = None

    def succeed(self, first: int) -> None:
        """Answer with the position, or the range of positions, from `first` on."""
        self.reply.succeed(first if self.single else range(first, first + len(self.bodies)))

    @property
    def positions(self) -> range | None:
        """The positions it would have, None as long as it has none."""
        if self.first_position is None:
            return None
        return range(self.first_position, self.first_position + len(self.bodies))


class SealRequest:
    """Seal the session, if nothing was appended since the caller looked at it.

    Attributes:
        hashed: SHA-256 of the log up to `hashed_end`.
        hashed_end: how far the caller has hashed.
        verified_position: how far the caller has verified the attachments.
        reply: gets the receipt; None if there are attachments that the caller has not verified.
    """

    __slots__ = ("hashed", "hashed_end", "reply", "size_bytes", "verified_position")

    def __init__(self, hashed: Hash, hashed_end: int, verified_position: int, reply: Reply) -> None:
        self.hashed = hashed
        self.hashed_end = hashed_end
        self.verified_position = verified_position
        self.reply = reply
        self.size_bytes = 0


Request = AppendRequest | SealRequest


def append_request(
    session_id: str, kind: str, text: str, data: Any, *, key: str | None, expected: int | None, reply: Reply
) -> AppendRequest:
    """Encode one event, in the caller's thread and as it is now.

    Raises:
        InvalidEventError: the event cannot be stored, or `expected` is no position.
    """
    try:
        check_not_attachment(kind)
        _check_expected(expected)
        body = encode_event(kind, text, data, time.time_ns(), key)
    except InvalidEventError as error:
        raise InvalidEventError(error.place, error.reason, session_id) from None
    return AppendRequest((body,), None if key is None else (key,), expected, reply, single=True)


def batch_request(
    session_id: str, events: Iterable[Event], *, expected: int | None, reply: Reply
) -> AppendRequest:
    """Encode a batch, in the caller's thread and as it is now; it may be empty.

    Raises:
        InvalidEventError: an event cannot be stored, or `expected` is no position.
        LimitExceededError: too many events.
    """
    try:
        _check_expected(expected)
        bodies, keys = encode_batch(events, time.time_ns())
    except InvalidEventError as error:
        raise InvalidEventError(error.place, error.reason, session_id) from None
    except LimitExceededError as error:
        raise LimitExceededError(error.limit, error.maximum, error.actual, error.advice, session_id) from None
    used = keys if any(key is not None for key in keys) else None
    return AppendRequest(bodies, used, expected, reply, single=False)


def _check_expected(expected: object) -> None:
    if expected is not None and expected.__class__ is not int:
        raise InvalidEventError("expected", f"must be a position, an int, not {expected!r}")
