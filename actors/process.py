"""The stores of this process: shared by folder, drained at exit, given up in a forked child."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import threading
import weakref
from typing import TYPE_CHECKING

from ..storage.directory import claim_store, open_store_directory
from ..storage.errors import StoreReadOnlyError
from .actor import forget_parent
from .runtime import Runtime

if TYPE_CHECKING:
    from ..storage.vfs import Directory, FileSystem

logger = logging.getLogger("sealog")

_registry_lock = threading.Lock()
_shared: weakref.WeakValueDictionary[tuple[int, int], Runtime] = weakref.WeakValueDictionary()
_all: weakref.WeakSet[Runtime] = weakref.WeakSet()


def open_runtime(
    fs: FileSystem, path: str, *, read_only: bool, create: bool, max_live_sessions: int, exit_timeout_s: float
) -> Runtime:
    """Return the runtime of a store: the one this process has already, or a new one.

    Raises:
        StoreNotFoundError: there is no store.
        StoreReadOnlyError: it was to be written and cannot be.
        UpgradeRequiredError: the store was made by a newer version.
        OSError: it cannot be opened, locked or swept.
    """
    try:
        directory = open_store_directory(fs, path, create=create and not read_only)
    except OSError as error:
        if not read_only and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreReadOnlyError(path, "open", str(error)) from error
        raise
    try:
        if read_only:
            runtime = Runtime(fs, directory, None, 0, 0.0)
            _all.add(runtime)
            return runtime
        return _share(fs, directory, max_live_sessions, exit_timeout_s)
    except BaseException:
        directory.close()
        raise


def _share(fs: FileSystem, directory: Directory, max_live_sessions: int, exit_timeout_s: float) -> Runtime:
    found = fs.stat(directory.path)
    identity = (0, 0) if found is None else found.identity
    while True:
        with _registry_lock:
            runtime = _shared.get(identity)
            if runtime is None or runtime.closed.is_set():
                marker = claim_store(directory)
                try:
                    runtime = Runtime(fs, directory, marker, max_live_sessions, exit_timeout_s)
                except BaseException:
                    marker.close()
                    raise
                _shared[identity] = runtime
                _all.add(runtime)
                return runtime
            if runtime.users:
                runtime.users += 1
                directory.close()
                return runtime
        # Its last handle is being closed. Not by waiting for the event: an interrupt could leave that locked.
        runtime.shut_down(None)


def release_runtime(runtime: Runtime, timeout_s: float | None) -> None:
    """Give up one handle; the last one shuts the runtime down.

    Raises:
        TimeoutError: what was accepted could not be committed in time.
    """
    with _registry_lock:
        runtime.users = max(runtime.users - 1, 0)
        last = runtime.users == 0
    if last:
        runtime.shut_down(timeout_s)


@atexit.register
def _drain_at_exit() -> None:
    for runtime in list(_all):
        try:
            runtime.shut_down(runtime.exit_timeout_s)
        except Exception as error:  # noqa: BLE001 — the others are drained too
            logger.warning("store %s was not drained at exit: %s", runtime.path, error)


def _after_fork_in_child() -> None:
    global _registry_lock  # noqa: PLW0603 — another thread's hold of it stayed in the parent
    _registry_lock = threading.Lock()
    _shared.clear()
    forget_parent()
    for runtime in list(_all):
        runtime.forget_parent()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
