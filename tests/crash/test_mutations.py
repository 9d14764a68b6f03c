"""Faults planted into the storage layer: the explorer must report each of them.

A mutation replaces lines of one function. Should the source change so that the lines are not found any more,
its test fails and has to be brought up to date.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from sealog.storage import attachments, directory, log, reader, recovery, scan

from . import scripts
from .explorer import Explorer, Plan, Script, settled
from .model import Violation

ONE_CRASH = Plan(every=(0,), cuts=(None,))
KILL_AND_CUT = Plan(every=(1, 0), cuts=(0, None))
TORN_AND_CUT = Plan(every=(1, 0), cuts=(None, None))
THREE_CRASHES = Plan(every=(2, 1, 0), cuts=(None, 0, 6))


class Mutation(msgspec.Struct, frozen=True):
    """Lines of a function, what stands there instead, and the script that shows the difference."""

    name: str
    function: Callable[..., Any]
    lines: str
    instead: str
    script: Script
    plan: Plan = ONE_CRASH


MUTATIONS = (
    Mutation(
        "a session is acknowledged before the store's folder is synced",
        directory.create_session,
        "        _sync_or_undo(store, session_id, name)\n",
        "",
        scripts.life,
    ),
    Mutation(
        "a session moves into place before its folder is synced",
        directory.create_session,
        "        directory.sync()\n",
        "",
        scripts.life,
    ),
    Mutation(
        "a session moves into place before its log is synced",
        log.create_log,
        "        file.sync_data()\n",
        "",
        scripts.life,
    ),
    Mutation(
        "a session is made at its final place",
        directory.create_session,
        'name = f"{NEW_PREFIX}{secrets.token_hex(8)}"',
        "name = session_id",
        scripts.life,
    ),
    Mutation(
        "the folders above a store are not synced",
        directory.open_store_directory,
        "            _sync_above(fs, path)\n",
        "",
        scripts.short,
        KILL_AND_CUT,
    ),
    Mutation(
        "an append is acknowledged before the sync",
        log.Log._write,
        "    self._file.sync_data()\n",
        "",
        scripts.life,
    ),
    Mutation(
        "the head mark is written before the sync (W3)",
        log.Log._write,
        "    self._file.sync_data()\n",
        "    mark = encode_mark(self.view.keys, Head(frame.end, frame.next_position, frame.header_check))\n"
        "    self._lock.write_mark(mark)\n"
        "    self._file.sync_data()\n",
        scripts.life,
    ),
    Mutation(
        "the index checkpoint is written ahead of the log",
        log.Log._write,
        "    self._file.sync_data()\n",
        "    session = self._fs.open_directory(self.path.rpartition('/')[0])\n"
        "    early = checkpoint_of(self.view.keys, frame, encode_index(self.view.index))\n"
        "    write_checkpoint(session, INDEX_CHECKPOINT, early)\n"
        "    self._file.sync_data()\n",
        scripts.life,
    ),
    Mutation(
        "a second frame is written while the first is not synced (W1)",
        log.Log._write,
        "    self._file.sync_data()\n",
        "    if head.position % 2:\n        self._file.sync_data()\n",
        scripts.life,
    ),
    Mutation(
        "an opened log is shown before it is synced (W2)",
        log.open_log,
        "        file.sync_data()\n",
        "",
        scripts.short,
        KILL_AND_CUT,
    ),
    Mutation(
        "an opened session is shown before the store's folder is synced",
        log.open_log,
        "        store.sync()\n",
        "",
        scripts.short,
        KILL_AND_CUT,
    ),
    Mutation(
        "a reader shows what is not synced",
        reader.LogReader._make_durable,
        "    sync_if_possible(self.view.shared.file)\n",
        "",
        scripts.life,
    ),
    Mutation(
        "a torn frame is taken for whole",
        scan.walk_chain,
        "if xxh3_64_intdigest(payload, seed) != digest:",
        "if False:",
        scripts.life,
    ),
    Mutation(
        "a tail is cut off before it is copied",
        recovery.recover,
        "    name = _quarantine(",
        "    file.truncate(end)\n    file.sync_data()\n    name = _quarantine(",
        scripts.short_append,
        TORN_AND_CUT,
    ),
    Mutation(
        "a tail is cut off before its copy is synced",
        recovery._quarantine,
        "        copy.sync_data()\n",
        "",
        scripts.short_append,
        TORN_AND_CUT,
    ),
    Mutation(
        "a tail is cut off before the name of its copy is synced",
        recovery._quarantine,
        "        quarantine.sync()\n",
        "",
        scripts.short_append,
        TORN_AND_CUT,
    ),
    Mutation(
        "a tail is cut off before the quarantine of a dead owner is synced",
        recovery._quarantine,
        "        directory.make_directory(QUARANTINE)\n    directory.sync()",
        "        directory.make_directory(QUARANTINE)\n        directory.sync()",
        scripts.short_append,
        THREE_CRASHES,
    ),
    Mutation(
        "a stage is put in place before it is synced",
        attachments.stage_attachment,
        "        file.sync_data()\n",
        "",
        scripts.attachments,
    ),
    Mutation(
        "an attachment is committed before its name is synced",
        attachments.publish_stages,
        "        directory.sync()\n",
        "",
        scripts.attachments,
    ),
    Mutation(
        "an attachment is committed before its folder is synced",
        attachments.open_attachments,
        "        session.sync()",
        "        pass",
        scripts.attachments,
    ),
    Mutation(
        "a committed attachment is swept",
        attachments._is_attachment,
        "if position >= next_position:",
        "if position >= next_position - 1:",
        scripts.attachments,
    ),
    Mutation(
        "a session is emptied before its move to the trash is synced",
        directory.delete_session,
        "    store.sync()\n    remove_tree(store, trash)\n",
        "    remove_tree(store, trash)\n",
        scripts.deletions,
    ),
    Mutation(
        "a session is emptied where it stands",
        directory.delete_session,
        "    trash = ",
        "    store.open_directory(session_id).unlink('log')\n    trash = ",
        scripts.deletions,
    ),
    Mutation(
        "the trash of a dead owner is emptied before it is synced",
        directory._sweep_store,
        "    if dead:\n        directory.sync()",
        "    if dead:\n        pass",
        scripts.deletions,
        KILL_AND_CUT,
    ),
    Mutation(
        "a failed append is not rolled back",
        log.Log.roll_back,
        "    self._file.truncate(self.head.end)\n",
        "",
        scripts.failures,
    ),
    Mutation(
        "a log is not restored after a failed sync (W4)",
        recovery.restore,
        "        file.truncate(head.end)\n",
        "        pass\n",
        scripts.failures,
    ),
)


def plant(monkeypatch: pytest.MonkeyPatch, mutation: Mutation) -> None:
    """Replace the code of the function, also for modules that have imported it by name."""
    function = mutation.function
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(mutation.lines) >= 1, "the lines are gone: bring this mutation up to date"
    mutated = "from __future__ import annotations\n" + source.replace(mutation.lines, mutation.instead, 1)
    names: dict[str, Any] = {}
    exec(compile(mutated, "<mutated>", "exec"), function.__globals__, names)
    monkeypatch.setattr(function, "__code__", names[function.__name__].__code__)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_explorer_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, mutation)
    disk, model = settled(scripts.short) if mutation.script is scripts.short_append else (None, None)
    with pytest.raises(Violation):
        Explorer(mutation.plan).run(mutation.script, disk, model)
