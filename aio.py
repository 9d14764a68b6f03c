"""The same API for async code: the same names, with `await`.

    import sealog.aio

    async with await sealog.aio.open("sessions") as store:
        session = await store.create_session("agent-1")
        await session.append("user-message", "hello")
        async for position, event in session.subscribe():
            ...

Appends go through the session's mailbox and take no thread of their own; what opens or reads files runs on
the event loop's pool of worker threads. A cancelled append that was not taken yet is not stored; one that was
taken is waited for, and the cancellation goes on when its outcome is known. `len(session)`,
`session.is_sealed` and `session.header` are not awaited: they read the end of a log at most.

Runs on asyncio with the standard library alone, and on trio where that is installed.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .actors.async_subscription import Subscription
from .actors.event_loop import InThread, finish_in_thread, new_wakeup, remaining_s, run_in_thread
from .actors.requests import ReplyFuture, append_request, batch_request
from .actors.store import Store as _BlockingStore
from .actors.store import open_store
from .projections.asynchronous import AcpSessions, HarnessMemory
from .storage.errors import (
    AppendOutcomeUnknownError,
    MailboxFullError,
)

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

    from .actors.attaching import Source
    from .actors.describing import SessionInfo
    from .actors.event_loop import Wakeup
    from .actors.projection import Projection
    from .actors.readable import ReadableSession
    from .actors.requests import AppendRequest
    from .actors.sealing import SealedSession as _BlockingSealedSession
    from .actors.session import Session as _BlockingSession
    from .actors.store import StoreStats
    from .storage.attachments import Attachment
    from .storage.events import Event
    from .storage.format import Receipt, SessionHeader
    from .storage.recovery import RecoveryReport
    from .storage.repair import RepairReport
    from .storage.verify import VerifyReport

__all__ = [
    "AcpSessions",
    "HarnessMemory",
    "SealedSession",
    "Session",
    "Store",
    "Subscription",
    "open",
]

S = TypeVar("S")


async def open(  # noqa: A001 — as sealog.open
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    create: bool = True,
    max_live_sessions: int = 256,
    exit_timeout_s: float = 5.0,
) -> Store:
    """Open a store, as `sealog.open`."""
    opened: list[_BlockingStore] = []

    def call() -> None:
        opened.append(
            open_store(
                path,
                read_only=read_only,
                create=create,
                max_live_sessions=max_live_sessions,
                exit_timeout_s=exit_timeout_s,
            )
        )

    try:
        await run_in_thread(call)
    except BaseException as error:  # cancelled meanwhile: nobody gets it, who could close it
        if opened and not isinstance(error, GeneratorExit):
            await finish_in_thread(opened[0].close)
        raise
    return Store(opened[0])


class Store:
    """A folder of sessions, as `sealog.Store`."""

    def __init__(self, store: _BlockingStore) -> None:
        self._store = store

    def __repr__(self) -> str:
        return repr(self._store).replace("sealog.", "sealog.aio.", 1)

    @property
    def path(self) -> str:
        """The store's folder, absolute."""
        return self._store.path

    @property
    def blocking(self) -> _BlockingStore:
        """The same store for threads."""
        return self._store

    async def create_session(
        self, session_id: str, created_at: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Session:
        """Make a session, as `sealog.Store.create_session`."""
        return Session(await run_in_thread(self._store.create_session, session_id, created_at, labels))

    async def open_session(self, session_id: str, *, verify: Literal["tail", "full"] = "tail") -> Session:
        """Open a session, as `sealog.Store.open_session`."""
        return Session(await run_in_thread(partial(self._store.open_session, session_id, verify=verify)))

    async def session_ids(self) -> list[str]:
        """List all sessions, as `sealog.Store.session_ids`."""
        return await run_in_thread(self._store.session_ids)

    async def describe(self, session_id: str) -> SessionInfo:
        """Look at one session, as `sealog.Store.describe`."""
        return await run_in_thread(self._store.describe, session_id)

    def overview(self) -> AsyncIterator[SessionInfo]:
        """Look at all sessions, as `sealog.Store.overview`."""
        return InThread(self._store.overview())

    async def recover_all(
        self, progress: Callable[[int, int, RecoveryReport], None] | None = None
    ) -> list[RecoveryReport]:
        """Recover every session, as `sealog.Store.recover_all`; `progress` is called on a worker thread."""
        return await run_in_thread(self._store.recover_all, progress)

    async def delete_session(self, session_id: str, *, require_sealed: bool = False) -> None:
        """Delete a session, as `sealog.Store.delete_session`."""
        await run_in_thread(partial(self._store.delete_session, session_id, require_sealed=require_sealed))

    async def verify(self, session_id: str) -> VerifyReport:
        """Check every byte of a session, as `sealog.Store.verify`."""
        return await run_in_thread(self._store.verify, session_id)

    async def repair(self, session_id: str, into: str | os.PathLike[str]) -> RepairReport:
        """Salvage a damaged session into another store, as `sealog.Store.repair`."""
        return await run_in_thread(self._store.repair, session_id, into)

    def stats(self) -> StoreStats:
        """Return what the store's machinery is doing, as `sealog.Store.stats`."""
        return self._store.stats()

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 — as sealog.Store.close
        """Give up the handle, as `sealog.Store.close`; also in a task that is cancelled."""
        await finish_in_thread(self._store.close, timeout)

    async def __aenter__(self) -> Self:
        self._store.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Readable:
    """The reading half of both kinds of session handles."""

    def __init__(self, session: ReadableSession) -> None:
        self._reader = session

    def __repr__(self) -> str:
        return repr(self._reader).replace("sealog.", "sealog.aio.", 1)

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, index: int | slice) -> Awaitable[Any]:
        """Read an event, or a list of them: `await session[3]`, `await session[-10:]`."""
        return run_in_thread(self._reader.__getitem__, index)

    def events(self, start: int = 0, stop: int | None = None) -> AsyncIterator[Event]:
        """Iterate over durable events, as `sealog.Session.events`."""
        return InThread(self._reader.events(start, stop))

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.events()

    def attachments(self) -> AsyncIterator[Attachment]:
        """Iterate over all attachments, as `sealog.Session.attachments`."""
        return InThread(self._reader.attachments())

    async def tail(self, n: int) -> list[Event]:
        """Return the last `n` events, as `sealog.Session.tail`."""
        return await run_in_thread(self._reader.tail, n)

    async def read_attachment(self, position: int) -> Attachment:
        """Return the attachment at `position`; reading its `bytes` blocks, so do that with `to_thread`."""
        return await run_in_thread(self._reader.read_attachment, position)

    async def project(self, projection: Projection[S]) -> S:
        """Return the state of a projection, as `sealog.Session.project`; folded on a worker thread."""
        return await run_in_thread(partial(self._reader.project, projection))

    def subscribe(self, start: int = 0) -> Subscription:
        """Follow the session, as `sealog.Session.subscribe`."""
        return Subscription(self._reader, start)

    @property
    def is_sealed(self) -> bool:
        """Whether the session is sealed."""
        return self._reader.is_sealed

    @property
    def header(self) -> SessionHeader:
        """What the session was created with."""
        return self._reader.header

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._reader.session_id

    @property
    def path(self) -> str:
        """The session's directory."""
        return self._reader.path

    @property
    def recovered(self) -> RecoveryReport | None:
        """What opening it in this process had to repair; None if it was clean."""
        return self._reader.recovered

    def close(self) -> None:
        """Give up the handle."""
        self._reader.close()

    async def __aenter__(self) -> Self:
        self._reader.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()


class Session(_Readable):
    """A handle on one session, as `sealog.Session`."""

    def __init__(self, session: _BlockingSession) -> None:
        super().__init__(session)
        self._session = session

    async def append(
        self,
        kind: str,
        text: str,
        data: Any = None,
        *,
        key: str | None = None,
        expected: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 — as sealog.Session.append
    ) -> int:
        """Append one event, as `sealog.Session.append`."""
        future = ReplyFuture()
        request = append_request(
            self._reader.session_id, kind, text, data, key=key, expected=expected, reply=future
        )
        position: int = await self._submit(request, future, timeout)
        return position

    async def append_many(
        self,
        events: Iterable[Event],
        *,
        expected: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 — as sealog.Session.append_many
    ) -> range:
        """Append a batch, as `sealog.Session.append_many`."""
        future = ReplyFuture()
        request = batch_request(self._reader.session_id, events, expected=expected, reply=future)
        if not request.bodies:
            return await run_in_thread(partial(self._session.append_many, (), expected=expected))
        positions: range = await self._submit(request, future, timeout)
        return positions

    def append_nowait(
        self, kind: str, text: str, data: Any = None, *, key: str | None = None, expected: int | None = None
    ) -> Future[int]:
        """Append without waiting, as `sealog.Session.append_nowait`."""
        return self._session.append_nowait(kind, text, data, key=key, expected=expected)

    async def _submit(self, request: AppendRequest, future: ReplyFuture, timeout_s: float | None) -> Any:
        session, wakeup = self._session, new_wakeup()
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        future.add_done_callback(lambda _: wakeup.set())
        try:
            await self._offer(request, wakeup, deadline)
            while not future.done() and await wakeup.wait(remaining_s(deadline)):
                pass
        except BaseException as error:  # cancelled: absent, or known when this ends
            if future.cancel():
                session.withdraw(request, wakeup)
            elif not isinstance(error, GeneratorExit):  # else the loop was closed: nobody can wait
                await wakeup.wait_until(future.done)
            raise
        if not future.done():
            if future.cancel():
                session.withdraw(request, wakeup)
                raise MailboxFullError(session.session_id, "the session did not take it until the timeout")
            raise AppendOutcomeUnknownError(
                session.session_id, "not confirmed until the timeout", request.positions, future
            )
        return future.result()

    async def _offer(self, request: AppendRequest, wakeup: Wakeup, deadline: float | None) -> None:
        """Put a request into the mailbox, waiting for room."""
        while not self._session.offer(request, wakeup):
            if not await wakeup.wait(remaining_s(deadline)):
                raise MailboxFullError(self.session_id, "the mailbox stayed full until the timeout")

    async def attach(
        self,
        source: Source,
        *,
        file_name: str | None = None,
        media_type: str | None = None,
        text: str = "",
        key: str | None = None,
    ) -> int:
        """Store a file and its event, as `sealog.Session.attach`."""
        attach = partial(
            self._session.attach, source, file_name=file_name, media_type=media_type, text=text, key=key
        )
        return await run_in_thread(attach)

    async def seal(self) -> SealedSession:
        """Make the session final, as `sealog.Session.seal`."""
        return SealedSession(await run_in_thread(self._session.seal))

    async def delete_committed(self) -> None:
        """Delete a sealed session, as `sealog.Session.delete_committed`."""
        await run_in_thread(self._session.delete_committed)

    async def delete_abandoned(self) -> None:
        """Delete the session, as `sealog.Session.delete_abandoned`."""
        await run_in_thread(self._session.delete_abandoned)


class SealedSession(_Readable):
    """A sealed session, as `sealog.SealedSession`."""

    def __init__(self, session: _BlockingSealedSession) -> None:
        super().__init__(session)
        self._sealed = session

    @property
    def receipt(self) -> Receipt:
        """What the seal says."""
        return self._sealed.receipt
