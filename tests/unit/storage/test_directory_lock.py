"""Session locks: one owner, named to everybody else, and gone with its process."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage import directory as directory_module
from sealog.storage.directory import lock_session
from sealog.storage.errors import SessionLockedError

if TYPE_CHECKING:
    from .conftest import Kit


class TestLock:
    def test_a_second_owner_is_refused_and_told_who_holds_it(self, kit: Kit) -> None:
        """INV-4"""
        kit.create()
        kit.owner()
        before = kit.snapshot()
        with pytest.raises(SessionLockedError) as caught:
            kit.owner()
        assert kit.snapshot() == before
        error = caught.value
        assert error.path == str(kit.path / "s" / "lock")
        assert error.holder is not None
        assert error.holder.keys() == {"pid", "host", "started"}
        assert (error.holder["pid"], error.holder["host"]) == (os.getpid(), socket.gethostname()[:64])

    def test_the_lock_dies_with_its_process(self, kit: Kit) -> None:
        """No waiting, no stale lock."""
        kit.create()
        code = (
            "import sys, signal\n"
            "from sealog.storage.directory import lock_session, open_store_directory\n"
            "from sealog.storage.vfs import OsFileSystem\n"
            "fs = OsFileSystem()\n"
            "lock = lock_session(fs, open_store_directory(fs, sys.argv[1], create=False), 's')\n"
            "print('held', flush=True)\n"
            "signal.pause()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, str(kit.path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            with pytest.raises(SessionLockedError) as caught:
                kit.owner()
            assert caught.value.holder is not None
            assert caught.value.holder["pid"] == child.pid
            child.send_signal(signal.SIGKILL)
        kit.clean([])

    @pytest.mark.parametrize(
        "content", [b"", b"\xff" * 300, bytes(300), b" " * 64 + b"[1, 2]", b"x" * 64 + b'{"pid"']
    )
    def test_an_unreadable_holder_blocks_nobody(self, kit: Kit, content: bytes) -> None:
        kit.create()
        path = kit.path / "s" / "lock"
        path.write_bytes(content)
        owner = kit.owner()
        path.write_bytes(content)
        with pytest.raises(SessionLockedError, match="another process") as caught:
            kit.owner()
        assert caught.value.holder is None
        owner.crash()
        kit.clean([])

    def test_a_lock_file_left_out_of_a_backup_is_made_anew(self, kit: Kit) -> None:
        kit.make("a")
        kit.forget_mark()
        kit.clean(["a"])
        assert stat.S_IMODE((kit.path / "s" / "lock").stat().st_mode) == 0o600

    def test_a_lock_on_a_file_that_was_replaced_is_none(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A session deleted and made anew between the open and the lock: the second try gets the new file."""
        kit.create()
        plain = directory_module._open_lock_file
        opened: list[Any] = []

        def open_lock_file(directory: Any) -> Any:
            file = plain(directory)
            opened.append(file.stat().identity)
            if len(opened) == 1:
                (kit.path / "s").rename(kit.path / "aside")
                kit.create()
            return file

        monkeypatch.setattr(directory_module, "_open_lock_file", open_lock_file)
        lock = lock_session(kit.fs, kit.store, "s")
        assert len(opened) == 2
        assert lock._file.stat().identity == opened[1] != opened[0]
        lock.close()

    def test_a_lock_that_is_replaced_for_ever_is_given_up(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kit.create()
        monkeypatch.setattr(kit.fs, "stat", lambda path: None)
        with pytest.raises(SessionLockedError):
            lock_session(kit.fs, kit.store, "s")

    @pytest.mark.parametrize("in_place", ["link", "directory", "fifo"])
    def test_something_else_in_the_place_of_the_lock_is_an_error(self, kit: Kit, in_place: str) -> None:
        kit.make("a")
        path = kit.path / "s" / "lock"
        path.rename(kit.path / "aside")
        if in_place == "link":
            path.symlink_to(kit.path / "aside")
        elif in_place == "directory":
            path.mkdir()
        else:
            os.mkfifo(path)
        with pytest.raises(OSError) as caught:  # noqa: PT011 — the number is checked
            kit.owner()
        assert caught.value.errno in (errno.ELOOP, errno.EISDIR, errno.EINVAL)
        assert (kit.path / "aside").stat().st_size == 256

    @pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
    def test_a_file_system_without_locks_is_named(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        """An explicit error, not silence: without locks two owners could not be kept apart."""
        kit.create()

        def flock(fd: int, operation: int) -> None:
            raise OSError(code, "no locks")

        monkeypatch.setattr("fcntl.flock", flock)
        with pytest.raises(OSError, match="put the store on a local file system") as caught:
            lock_session(kit.fs, kit.store, "s")
        assert caught.value.errno == code

    def test_an_abandoned_lock_stays_with_its_owner(self, kit: Kit) -> None:
        """A forked child closes its copies without giving the parent's lock back."""
        kit.create()
        lock = lock_session(kit.fs, kit.store, "s")
        copy = os.dup(lock._file._fd)  # type: ignore[attr-defined]
        lock.abandon()
        with pytest.raises(SessionLockedError):
            lock_session(kit.fs, kit.store, "s")
        os.close(copy)
        lock_session(kit.fs, kit.store, "s").close()

    def test_closing_frees_the_copies_of_forked_children(self, kit: Kit) -> None:
        kit.create()
        lock = lock_session(kit.fs, kit.store, "s")
        copy = os.dup(lock._file._fd)  # type: ignore[attr-defined]
        lock.close()
        lock_session(kit.fs, kit.store, "s").close()
        os.close(copy)

    def test_the_holder_is_one_line_of_json_behind_the_mark(self, kit: Kit) -> None:
        kit.create()
        data = (kit.path / "s" / "lock").read_bytes()
        assert len(data) == 256
        assert json.loads(data[64:])["pid"] == os.getpid()
        assert data[:64] == bytes(64)
        assert data.endswith(b" \n")
