"""Handles that the garbage collector finds: it may run anywhere, also where a thread holds a lock of ours."""

from __future__ import annotations

import gc
import threading
import warnings
from typing import TYPE_CHECKING, Any

import sealog

from ...api.kit import SAFETY_S, Kit, Task, until

if TYPE_CHECKING:
    from pathlib import Path


class Holder:
    """Something of the user's that holds a handle, in a cycle."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.me = self


def test_a_store_that_is_collected_while_its_supervisor_is_locked_is_closed(tmp_path: Path) -> None:
    store = sealog.open(tmp_path)
    future = store.create_session("s").append_nowait("m", "x")
    supervision = store._runtime.supervision
    assert supervision is not None
    holder = Holder(store)
    del store

    def collect() -> None:
        nonlocal holder
        with supervision.mailbox.lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del holder
            gc.collect()

    Task(collect).result()
    assert future.result(SAFETY_S) == 0
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("sealog")], "the end")


def test_a_pinned_handle_that_is_collected_while_its_slot_is_locked_gives_its_pin_back(kit: Kit) -> None:
    session = kit.store().create_session("s")
    slot = session._slot
    holder = Holder(session.__enter__())
    del session
    assert slot.pins == 1

    def collect() -> None:
        nonlocal holder
        with slot._small_lock:
            del holder
            gc.collect()

    Task(collect).result()
    assert slot.pins == 0


def test_a_subscription_that_is_collected_gives_its_file_back(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    session = store.create_session("s")
    session.append("m", "x")
    store.create_session("other")  # so that it reads a file of its own
    subscription = session.subscribe()
    assert subscription.get(SAFETY_S)[0] == 0
    reader = subscription._follower._reader
    assert reader is not None
    shared = reader.view.shared
    holder = Holder(subscription)
    del subscription, reader, holder
    gc.collect()
    assert not shared.acquire()
    assert session._slot.watchers == []
