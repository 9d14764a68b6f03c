"""Sessions as directories: ids, headers, atomic creation, deletion. Locks and stores have their own files."""

from __future__ import annotations

import enum
import errno
import os
import re
import shutil
import stat
from typing import TYPE_CHECKING, Any

import pytest

from sealog.storage import directory as directory_module
from sealog.storage.directory import (
    create_session,
    delete_session,
    open_session_directory,
    remove_tree,
    session_ids,
)
from sealog.storage.errors import (
    InvalidHeaderError,
    InvalidSessionIdError,
    SessionExistsError,
    SessionLockedError,
    SessionNotFoundError,
    StorageFullError,
)
from sealog.storage.header import LABELS_BYTES_MAX, check_session_id, new_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Kit


class Name(str, enum.Enum):  # noqa: UP042 — older code has it
    MAIN = "main"


def entries(kit: Kit) -> list[str]:
    return sorted(path.name for path in kit.path.iterdir())


@pytest.fixture(params=[0o000, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


class TestSessionId:
    @pytest.mark.parametrize("session_id", ["a", "A-b_9", "-", "_", "0", "x" * 255])
    def test_it_is_1_to_255_of_the_allowed_characters(self, session_id: str) -> None:
        assert check_session_id(session_id) == session_id

    @pytest.mark.parametrize(
        "session_id",
        [
            *(
                "",
                "x" * 256,
                "a/b",
                "..",
                ".",
                ".new-1",
                "a b",
                "a\n",
                "\n",
                "a\0",
                "é",
                "\u0663",
                "a.b",
                "log:1",
            ),
            *(None, 1, b"a", ["a"]),
        ],
    )
    def test_everything_else_is_refused(self, session_id: Any) -> None:
        with pytest.raises(InvalidSessionIdError) as caught:
            check_session_id(session_id)
        assert caught.value.session_id is session_id

    def test_an_enum_member_that_is_text_counts_with_its_value(self) -> None:
        """`str()` of one is `Name.MAIN`, which is no id at all."""
        session_id = check_session_id(Name.MAIN)
        assert session_id == "main"
        assert type(session_id) is str


class TestHeader:
    def test_the_time_of_now_is_rfc_3339_in_utc(self) -> None:
        header = new_header("s", None, None)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", header.created_at)
        assert header.labels == {}

    def test_the_clock_is_read_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("time.time_ns", lambda: 1_767_323_045_000_000_999)
        assert new_header("s", None, None).created_at == "2026-01-02T03:04:05.000000Z"

    @pytest.mark.parametrize("created_at", ["yesterday", " x ", "\u200b"])
    def test_any_text_that_is_not_blank_is_kept(self, created_at: str) -> None:
        assert new_header("s", created_at, {}).created_at == created_at

    @pytest.mark.parametrize(
        ("created_at", "reason"),
        [
            ("", "is blank"),
            (" \u3000\n", "is blank"),
            (5, "not int"),
            (b"now", "not bytes"),
            ("\ud800", "surrogate"),
        ],
    )
    def test_other_times_are_refused(self, created_at: Any, reason: str) -> None:
        with pytest.raises(InvalidHeaderError, match=reason) as caught:
            new_header("s", created_at, None)
        assert (caught.value.session_id, caught.value.field) == ("s", "created_at")

    @pytest.mark.parametrize(
        "labels",
        [{"a": 1}, {1: "a"}, {"a": None}, {"a": b"x"}, ["a"], "a=b", 5, {"a": "\ud800"}, {"\ud800": "a"}],
    )
    def test_labels_are_text_to_text(self, labels: Any) -> None:
        with pytest.raises(InvalidHeaderError) as caught:
            new_header("s", None, labels)
        assert caught.value.field == "labels"

    def test_labels_are_copied_as_plain_text(self) -> None:
        labels = {Name.MAIN: Name.MAIN, "": ""}
        header = new_header("s", Name.MAIN, labels)
        labels["later"] = "x"  # type: ignore[index]
        assert header.labels == {"main": "main", "": ""}
        assert header.created_at == "main"
        assert {type(text) for pair in header.labels.items() for text in pair} == {str}

    def test_labels_are_limited_in_all(self) -> None:
        half = "é" * (LABELS_BYTES_MAX // 4)
        assert new_header("s", "x", {"a": half, "b": half[:-2]}).labels["a"] == half
        with pytest.raises(InvalidHeaderError, match=r"over 65,536 bytes in all"):
            new_header("s", "x", {"a": half, "b": half})


class TestCreate:
    def test_the_session_is_there_with_its_lock_held(self, kit: Kit) -> None:
        lock = create_session(kit.store, new_header("s", "now", {"a": "b"}))
        assert entries(kit) == [".sealog", "s"]
        with pytest.raises(SessionLockedError) as caught:
            kit.owner()
        assert caught.value.holder is not None
        assert caught.value.holder["pid"] == os.getpid()
        lock.close()
        with kit.owner() as owner:
            assert (owner.log.header.created_at, owner.log.header.labels) == ("now", {"a": "b"})

    def test_everything_is_synced_before_and_after_the_move_into_place(self, kit: Kit) -> None:
        """A synced file whose name is not synced would be lost."""
        kit.faults.clear()
        create_session(kit.store, new_header("s", None, None)).close()
        calls = [
            call if ".new-" not in call else call.partition(".new-")[0] + "new" for call in kit.faults.calls
        ]
        assert calls == [
            "open lock",
            "pwrite lock",
            "open log",
            "pwrite log",
            "pwrite log",
            "sync_data log",
            "sync new",
            "rename s",
            "sync store",
        ]

    def test_permissions_do_not_depend_on_the_umask(self, kit: Kit, umask: int) -> None:
        kit.make("x" * 70_000)
        for path in [kit.path / "s", *(kit.path / "s").rglob("*")]:
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path
        assert (kit.path / "s" / "checkpoints" / "index").exists()

    @pytest.mark.parametrize("in_the_way", ["session", "file", "empty", "link", "dangling"])
    def test_whatever_has_the_name_is_left_alone(self, kit: Kit, in_the_way: str) -> None:
        path = kit.path / "s"
        if in_the_way == "session":
            kit.create()
        elif in_the_way == "file":
            path.write_text("x")
        elif in_the_way == "empty":
            path.mkdir()
        else:
            path.symlink_to(kit.path if in_the_way == "link" else kit.path / "nowhere")
        before = kit.snapshot()
        with pytest.raises(SessionExistsError) as caught:
            create_session(kit.store, new_header("s", None, None))
        assert caught.value.path == str(path)
        assert kit.snapshot() == before

    def test_of_two_that_create_at_once_one_succeeds(self, kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
        """The other one comes between the look and the move."""
        plain = directory_module.create_log

        def create_log(*args: Any) -> None:
            plain(*args)
            monkeypatch.undo()
            kit.create()

        monkeypatch.setattr(directory_module, "create_log", create_log)
        with pytest.raises(SessionExistsError):
            create_session(kit.store, new_header("s", None, None))
        assert entries(kit) == [".sealog", "s"]
        kit.clean([])

    @pytest.mark.parametrize("call", ["open log", "pwrite log", "sync_data log", "rename s", "sync store"])
    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
    def test_a_failure_leaves_nothing(self, kit: Kit, call: str, code: int) -> None:
        kit.faults.fail(call, code)
        with pytest.raises(OSError, match=r"made to fail|ENOSPC") as caught:
            kit.create()
        assert isinstance(caught.value, StorageFullError) == (code == errno.ENOSPC)
        kit.faults.clear()
        assert entries(kit) == [".sealog"]
        kit.create()

    def test_what_is_filled_in_is_there_at_once(self, kit: Kit) -> None:
        create_session(
            kit.store, new_header("s", None, None), fill=lambda directory: directory.make_directory("more")
        ).close()
        assert (kit.path / "s" / "more").is_dir()

    def test_a_failing_fill_leaves_nothing(self, kit: Kit) -> None:
        def fill(directory: object) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            create_session(kit.store, new_header("s", None, None), fill=fill)
        assert entries(kit) == [".sealog"]


class TestDelete:
    def test_it_is_moved_aside_durably_before_it_is_removed(self, kit: Kit) -> None:
        kit.make("a")
        kit.faults.clear()
        delete_session(kit.store, "s")
        calls = kit.faults.calls
        assert calls[0].startswith("rename .trash-")
        assert calls[1] == "sync store"
        assert calls[-1] == "sync store"
        assert sorted(calls[2:-1]) == ["unlink lock", "unlink log"]
        assert entries(kit) == [".sealog"]

    def test_its_log_need_not_be_readable(self, kit: Kit) -> None:
        kit.make("a")
        kit.log_path().unlink()
        kit.log_path().mkdir()
        delete_session(kit.store, "s")
        assert entries(kit) == [".sealog"]

    def test_a_session_that_is_gone_cannot_be_deleted(self, kit: Kit) -> None:
        with pytest.raises(SessionNotFoundError):
            delete_session(kit.store, "s")

    def test_a_failure_on_the_way_leaves_no_half_session(self, kit: Kit) -> None:
        kit.make("a")
        kit.faults.fail("unlink log")
        with pytest.raises(OSError, match="made to fail"):
            delete_session(kit.store, "s")
        assert session_ids(kit.store) == []
        with pytest.raises(SessionNotFoundError):
            open_session_directory(kit.store, "s")


class TestRemoveTree:
    def test_links_are_removed_and_not_followed(self, kit: Kit, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        (outside / "inner").mkdir(parents=True)
        (outside / "file").write_text("precious")
        tree = kit.path / ".trash-1"
        (tree / "deep" / "er").mkdir(parents=True)
        (tree / "file").symlink_to(outside / "file")
        (tree / "deep" / "folder").symlink_to(outside)
        (tree / "deep" / "er" / "loop").symlink_to(tree)
        os.mkfifo(tree / "fifo")
        remove_tree(kit.store, ".trash-1")
        assert not tree.exists()
        assert sorted(path.name for path in outside.iterdir()) == ["file", "inner"]

    @pytest.mark.parametrize("kind", ["file", "link", "nothing"])
    def test_it_takes_any_entry(self, kit: Kit, kind: str) -> None:
        path = kit.path / "x"
        if kind == "file":
            path.write_text("x")
        elif kind == "link":
            path.symlink_to(kit.path)
        remove_tree(kit.store, "x")
        assert entries(kit) == [".sealog"]


class TestOpenSessionDirectory:
    @pytest.mark.parametrize("in_place", ["nothing", "file", "link"])
    def test_what_is_no_directory_is_no_session(self, kit: Kit, in_place: str) -> None:
        kit.make("a", session_id="other")
        if in_place == "file":
            (kit.path / "s").write_text("x")
        elif in_place == "link":
            (kit.path / "s").symlink_to(kit.path / "other")
        with pytest.raises(SessionNotFoundError) as caught:
            open_session_directory(kit.store, "s")
        assert (caught.value.session_id, caught.value.store) == ("s", str(kit.path))

    def test_one_that_may_not_be_opened_is_an_os_error(
        self, kit: Kit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is there: "not found" would be wrong."""
        kit.create()

        def forbidden(self: object, name: str) -> None:
            raise PermissionError(errno.EACCES, "no", name)

        monkeypatch.setattr(type(kit.store), "open_directory", forbidden)
        with pytest.raises(PermissionError):
            open_session_directory(kit.store, "s")

    def test_a_moved_store_is_still_the_opened_one(self, kit: Kit) -> None:
        """Names are relative to the open directory."""
        kit.make("a")
        kit.path.rename(kit.path.with_name("moved"))
        open_session_directory(kit.store, "s").close()
        shutil.rmtree(kit.path.with_name("moved"))
        with pytest.raises(SessionNotFoundError):
            open_session_directory(kit.store, "s")
