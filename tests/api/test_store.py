"""Opening and closing stores."""

from __future__ import annotations

import gc
import os
import stat
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sealog

from .kit import SAFETY_S, Kit, Task, texts, until

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_store_is_made_where_nothing_is(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "in" / "here"
    with sealog.open(path) as store:
        assert store.path == str(path)
        assert store.session_ids() == []
    assert sorted(entry.name for entry in path.iterdir()) == [".sealog"]


@pytest.mark.parametrize("kind", [str, Path, os.fsencode], ids=["str", "Path", "bytes"])
def test_a_path_may_be_given_in_any_form(tmp_path: Path, kind: Callable[[Any], Any]) -> None:
    path = tmp_path / "störe"
    with sealog.open(kind(str(path))) as store:
        assert store.path == str(path)
        session = store.create_session("s")
        assert session.append("m", "x") == 0
        assert session.path == str(path / "s")
    with sealog.open(path) as store:
        assert texts(store.open_session("s")) == ["x"]


@pytest.mark.parametrize("path", [None, 7, object(), []])
def test_a_path_of_another_type_is_a_type_error(path: Any) -> None:
    with pytest.raises(TypeError):
        sealog.open(path)


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sealog.open("store") as store:
        session = store.create_session("s")
        monkeypatch.chdir("/")
        assert session.append("m", "x") == 0
        assert store.path == str(tmp_path / "store")


def test_a_store_on_a_link_is_the_store_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real").mkdir()
    with sealog.open(tmp_path / "real") as one, sealog.open(tmp_path / "link") as two:
        session = one.create_session("s")
        assert two.open_session("s").append("m", "x") == 0
        assert session.append("m", "y") == 1


# -- what is not a store


def missing(tmp_path: Path) -> Path:
    return tmp_path / "typo"


def a_file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("mine")
    return tmp_path / "file"


def below_a_file(tmp_path: Path) -> Path:
    return a_file(tmp_path) / "store"


def no_store(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data").write_text("mine")
    return tmp_path / "mine"


def damaged(tmp_path: Path) -> Path:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / ".sealog").write_text("what is this")
    return tmp_path / "damaged"


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(entry): entry.read_bytes() if entry.is_file() else None for entry in path.rglob("*")}


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}], ids=["no create", "read-only"])
@pytest.mark.parametrize("place", [missing, a_file, below_a_file, no_store, damaged])
def test_without_create_what_is_not_a_store_is_refused_and_nothing_made(
    tmp_path: Path, place: Callable[[Path], Path], options: dict[str, bool]
) -> None:
    path = place(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(sealog.StoreNotFoundError) as caught:
        sealog.open(path, **options)
    assert caught.value.path == str(path)
    assert caught.value.reason
    assert str(path) in str(caught.value)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("place", [a_file, below_a_file, damaged])
def test_what_cannot_become_a_store_is_refused_and_nothing_made(
    tmp_path: Path, place: Callable[[Path], Path]
) -> None:
    path = place(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(sealog.StoreNotFoundError) as caught:
        sealog.open(path)
    assert str(path) in str(caught.value)
    assert tree(tmp_path) == before


def test_a_folder_of_other_things_can_become_a_store_that_leaves_them_alone(tmp_path: Path) -> None:
    path = no_store(tmp_path)
    (path / "notes.txt").write_text("mine")
    (path / "folder").mkdir()
    with sealog.open(path) as store:
        assert store.session_ids() == []
        store.create_session("s")
    assert (path / "data").read_text() == "mine"
    assert (path / "notes.txt").read_text() == "mine"
    assert (path / "folder").is_dir()


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".sealog").write_text("sealog store 2\n")
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(sealog.UpgradeRequiredError) as caught:
            sealog.open(tmp_path, **options)
        assert caught.value.path == str(tmp_path / ".sealog")
        assert "newer" in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"max_live_sessions": 0}, {"max_live_sessions": -1}, {"exit_timeout_s": -0.1}]
)
def test_a_bound_that_is_none_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least"):
        sealog.open(tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_files_and_folders_are_the_owners_only_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "store"
    before = os.umask(0)
    try:
        with sealog.open(path, max_live_sessions=1) as store:
            session = store.create_session("s")
            session.append("m", "x" * 100_000)
            session.attach(b"bytes")
            session.append("m", "x", key="k")
            session.seal()
            store.create_session("t").append("m", "x")
        with (path / "t" / "log").open("ab") as log:
            log.write(b"torn")
        with sealog.open(path) as store:
            store.recover_all()
    finally:
        os.umask(before)
    found = {entry: stat.S_IMODE(entry.stat().st_mode) for entry in (tmp_path / "a").rglob("*")}
    assert {"store", "attachments", "checkpoints", "quarantine", "log"} <= {entry.name for entry in found}
    for entry, mode in found.items():
        assert mode == (0o700 if entry.is_dir() else 0o600), entry


# -- sharing and closing


def test_two_stores_on_one_folder_share_what_runs_behind_them(tmp_path: Path) -> None:
    with sealog.open(tmp_path) as one, sealog.open(tmp_path) as two:
        session = one.create_session("s")
        assert two.open_session("s").append("m", "x") == 0
        assert session.append("m", "y") == 1
        assert two.stats() == one.stats()
        assert len([t for t in threading.enumerate() if t.name == "sealog-supervisor"]) == 1


def test_closing_one_of_two_stores_leaves_the_other(tmp_path: Path) -> None:
    one, two = sealog.open(tmp_path), sealog.open(tmp_path)
    session, other = one.create_session("s"), two.open_session("s")
    one.close()
    one.close()
    with pytest.raises(sealog.StoreClosedError):
        one.create_session("t")
    assert other.append("m", "x") == 0
    assert session.append("m", "y") == 1
    two.close()
    for handle in (session, other):
        with pytest.raises(sealog.StoreClosedError):
            handle.append("m", "z")


def test_a_reader_beside_a_writer_in_one_process(tmp_path: Path) -> None:
    with sealog.open(tmp_path) as store, sealog.open(tmp_path, read_only=True) as reader:
        session = store.create_session("s")
        session.append("m", "x")
        reading = reader.open_session("s")
        assert texts(reading) == ["x"]
        session.append("m", "y")
        assert texts(reading) == ["x", "y"]
        assert reader.describe("s").events == 2
        assert reader.stats().live_sessions == 0


def test_closing_commits_all_that_was_accepted(kit: Kit) -> None:
    store = kit.store(max_live_sessions=1)
    sessions = [store.create_session(f"s{number}") for number in range(4)]
    futures = [session.append_nowait("m", str(n)) for n in range(50) for session in sessions]
    store.close()
    assert all(future.done() for future in futures)
    assert [future.result() for future in futures] == [n for n in range(50) for _ in sessions]
    store = kit.store()
    for number in range(4):
        assert texts(store.open_session(f"s{number}")) == [str(n) for n in range(50)]


def test_a_close_that_takes_too_long_says_so_and_goes_on(kit: Kit) -> None:
    store = kit.store()
    session = store.create_session("s")
    gate = kit.fs.hold("sync_data", "s/log")
    future = session.append_nowait("m", "x")
    gate.wait_reached()
    with pytest.raises(TimeoutError, match="close"):
        store.close(0)
    for call in (store.session_ids, lambda: store.create_session("t")):
        with pytest.raises(sealog.StoreClosedError):
            call()
    again = Task(store.close, SAFETY_S)
    opening = Task(kit.store)
    gate.open()
    again.result()
    assert future.result(0) == 0
    assert opening.result().open_session("s").append("m", "y") == 1


def test_a_close_in_the_middle_of_appends_answers_each_of_them(kit: Kit) -> None:
    store = kit.store(max_live_sessions=2)
    sessions = [store.create_session(f"s{number}") for number in range(3)]
    started = threading.Semaphore(0)

    def work(worker: int) -> tuple[int, int]:
        count = 0
        while True:
            try:
                position = sessions[worker % 3].append("m", f"{worker}-{count}")
            except sealog.StoreClosedError:
                return worker, count
            assert position >= count
            count += 1
            started.release()

    tasks = [Task(work, worker) for worker in range(6)]
    for _ in range(50):
        assert started.acquire(timeout=SAFETY_S)
    store.close()
    counts = dict(task.result() for task in tasks)
    store = kit.store()
    for number in range(3):
        found = texts(store.open_session(f"s{number}"))
        expected = [f"{w}-{n}" for w in (number, number + 3) for n in range(counts[w])]
        assert sorted(found) == sorted(expected)


def closed_calls(store: sealog.Store, session: sealog.Session) -> dict[str, Callable[[], Any]]:
    return {
        "with": store.__enter__,
        "create_session": lambda: store.create_session("t"),
        "open_session": lambda: store.open_session("s"),
        "session_ids": store.session_ids,
        "describe": lambda: store.describe("s"),
        "recover_all": store.recover_all,
        "delete_session": lambda: store.delete_session("s"),
        "stats": store.stats,
        "verify": lambda: store.verify("s"),
        "repair": lambda: store.repair("s", "/nowhere"),
        "session with": session.__enter__,
        "append": lambda: session.append("m", "x"),
        "append timeout": lambda: session.append("m", "x", timeout=0),
        "append_many": lambda: session.append_many([sealog.Event("m", "x")]),
        "append_many empty": lambda: session.append_many([]),
        "append_nowait": lambda: session.append_nowait("m", "x"),
        "attach": lambda: session.attach(b"x"),
        "read_attachment": lambda: session.read_attachment(0),
        "attachments": lambda: list(session.attachments()),
        "events": session.events,
        "item": lambda: session[0],
        "slice": lambda: session[:],
        "len": lambda: len(session),
        "iter": lambda: iter(session),
        "tail": lambda: session.tail(1),
        "subscribe": session.subscribe,
        "seal": session.seal,
        "is_sealed": lambda: session.is_sealed,
        "header": lambda: session.header,
        "delete_committed": session.delete_committed,
        "delete_abandoned": session.delete_abandoned,
    }


@pytest.mark.parametrize("how", ["store", "read-only store"])
def test_every_call_after_close_raises_and_changes_nothing(kit: Kit, how: str) -> None:
    writer = kit.store()
    writer.create_session("s").append("m", "x")
    writer.close()
    store = kit.store(read_only=how != "store")
    session = store.open_session("s")
    store.close()
    before = kit.snapshot()
    for name, call in closed_calls(store, session).items():
        with pytest.raises(sealog.StoreClosedError) as caught:
            call()
        assert caught.value.path == str(kit.path), name
        assert "closed" in str(caught.value), name
    store.close()
    session.close()
    assert kit.snapshot() == before
    assert session.session_id == "s"
    assert session.path == str(kit.path / "s")
    assert session.recovered is None


def test_every_call_of_a_closed_session_handle_raises_and_others_work(kit: Kit) -> None:
    store = kit.store()
    session, other = store.create_session("s"), store.open_session("s")
    other.append("m", "x")
    session.close()
    session.close()
    calls = closed_calls(store, session)
    for name in list(calls)[list(calls).index("session with") :]:
        with pytest.raises(sealog.StoreClosedError, match="handle"):
            calls[name]()
    assert other.append("m", "y") == 1


def test_every_call_that_writes_is_refused_by_a_store_that_only_reads(kit: Kit) -> None:
    kit.store().create_session("s").append("m", "x")
    kit._stores[0].close()
    store = kit.store(read_only=True)
    session = store.open_session("s")
    before = kit.snapshot()
    calls = closed_calls(store, session)
    refused = [
        *("create_session", "recover_all", "delete_session", "append", "append timeout", "append_many"),
        *("append_many empty", "append_nowait", "attach", "seal", "delete_committed", "delete_abandoned"),
    ]
    for name in refused:
        with pytest.raises(sealog.StoreReadOnlyError) as caught:
            calls[name]()
        assert caught.value.path == str(kit.path)
        assert caught.value.action in str(caught.value)
    assert texts(session) == ["x"]
    assert store.describe("s").status == "ok"
    assert kit.snapshot() == before


def test_a_store_that_is_dropped_warns_and_is_closed(tmp_path: Path) -> None:
    stores = [sealog.open(tmp_path)]
    future = stores[0].create_session("s").append_nowait("m", "x")
    with pytest.warns(ResourceWarning, match="never closed") as warned:
        stores.clear()
    assert str(tmp_path) in str(warned[0].message)
    assert future.result(SAFETY_S) == 0
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("sealog")])


def test_a_session_keeps_its_store_from_being_dropped(tmp_path: Path) -> None:
    session = sealog.open(tmp_path).create_session("s")
    gc.collect()
    assert session.append("m", "x") == 0
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        del session
        gc.collect()


def test_a_store_that_was_closed_or_used_in_with_does_not_warn(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = sealog.open(tmp_path)
        store.close()
        with sealog.open(tmp_path) as other:
            pass
        del store, other
        gc.collect()
