"""Replaying the scenarios of the older harness memory."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import sealog
from sealog.projections.harness import (
    FeatureRecord,
    HarnessMemory,
    Message,
    ProgressEntry,
    RunCheckpoint,
    SessionManifest,
)

from .golden import agree, raw, same_file

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = "the file was refused when it was imported, so nothing is loaded from it"
KEPT = "the older program kept what was wrong in the file that was refused here"
LOADS = {"is_initialized", "load_bootstrap_state", "load_transcript_messages"}
ERRORS = {
    "NotFound": sealog.FeatureNotFoundError,
    "InvalidRequest": sealog.InvalidEventError,
}


def ns(time: dict[str, int] | None) -> int | None:
    return None if time is None else time["secs"] * 10**9 + time["nanos"]


def progress(entry: dict[str, Any] | None) -> ProgressEntry | None:
    if entry is None:
        return None
    created = ns(entry["created_at"])
    assert created is not None
    return ProgressEntry(entry["run_id"], entry["summary"], created)


def checkpoint(given: dict[str, Any] | None) -> RunCheckpoint | None:
    if given is None:
        return None
    times = {"started_at_ns": ns(given["started_at"]), "completed_at_ns": ns(given["completed_at"])}
    named = {name: given[name] for name in ("run_id", "status", "note")}
    return msgspec.convert({**named, **times}, RunCheckpoint)


def messages(given: list[dict[str, Any]]) -> list[Message]:
    made: list[Message] = []
    for message in given:
        content = (
            message["content"]
            if "content" in message
            else "".join([message["content_repeat"][0]] * message["content_repeat"][1])
        )
        made += [msgspec.convert({"role": message["role"], "content": content}, Message)] * message.get(
            "count", 1
        )
    return made


def split_time(time_ns: int | None) -> dict[str, int] | None:
    return None if time_ns is None else {"secs": time_ns // 10**9, "nanos": time_ns % 10**9}


def shown(value: Any) -> Any:
    """Return a result in the recorded form."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict) and "recent_progress" in plain:
        for entry in plain["recent_progress"]:
            entry["created_at"] = split_time(entry.pop("created_at_ns"))
        for entry in plain["checkpoints"]:
            entry["started_at"] = split_time(entry.pop("started_at_ns"))
            entry["completed_at"] = split_time(entry.pop("completed_at_ns"))
    return plain


class HarnessReplayer:
    """One scenario on sealog.

    Attributes:
        not_applicable: the steps that have no equal here, with the reason; -1 is the final file.
    """

    def __init__(self, folder: Path, *, reopen_always: bool = False) -> None:
        self.folder = folder
        self.reopen_always = reopen_always
        self.not_applicable: dict[int, str] = {}
        self.roots: dict[str, sealog.Store] = {}
        self.root = ""
        self.refused: set[str] = set()
        self.written: set[str] = set()

    @property
    def store(self) -> sealog.Store:
        return self.roots[self.root]

    @property
    def memory(self) -> HarnessMemory:
        return HarnessMemory(self.store)

    def close(self) -> None:
        for store in self.roots.values():
            store.close()

    def open(self, root: str) -> None:
        self.root = root
        if root not in self.roots:
            self.roots[root] = sealog.open(self.folder / root)

    def reopen(self) -> None:
        self.close()
        self.roots = {root: sealog.open(self.folder / root) for root in self.roots}

    def run(self, scenario: dict[str, Any]) -> None:
        steps = scenario["steps"]
        for index, step in enumerate(steps):
            do = dict(step["do"])
            operation = do.pop("op")
            if operation == "write_raw":
                self.write_raw(do["session"], raw(do), steps[index + 1 :])
            else:
                self.step(index, operation, do, step["result"])
            if self.reopen_always:
                self.reopen()
        self.check_final(scenario["final_files"])

    def step(self, index: int, operation: str, do: dict[str, Any], result: dict[str, Any]) -> None:
        if operation == "open":
            self.open(do["root"])
        elif operation == "reopen":
            self.reopen()
        elif operation == "ls":
            assert result == {"ok": {}}
            assert self.store.session_ids() == []
        elif do["session"] in self.refused and ("Storage" in str(result) or self.reads_file(operation)):
            self.not_applicable[index] = REFUSED
        elif operation == "read_raw":
            assert same_file(self.memory.export_state(do["session"]), result["ok"]), index
        elif "error" in result:
            with pytest.raises(ERRORS[result["error"]["kind"]]):
                self.call(operation, do)
        else:
            session = do["session"]
            assert agree(shown(self.call(operation, do)), result["ok"]), index
            if operation not in LOADS:
                self.written.add(session)

    def reads_file(self, operation: str) -> bool:
        """Tell whether what is loaded would come from the file that was refused."""
        return operation == "read_raw" or (operation in LOADS and not self.written)

    def call(self, operation: str, do: dict[str, Any]) -> Any:
        session = do.pop("session")
        made = {
            "manifest": lambda given: msgspec.convert(given, SessionManifest),
            "feature_list": lambda given: msgspec.convert(given, list[FeatureRecord]),
            "features": lambda given: msgspec.convert(given, list[FeatureRecord]),
            "initial_progress_entry": progress,
            "entry": progress,
            "initial_checkpoint": checkpoint,
            "checkpoint": checkpoint,
            "messages": messages,
        }
        arguments = {name: made[name](given) if name in made else given for name, given in do.items()}
        return getattr(self.memory, operation)(session, **arguments)

    def write_raw(self, session: str, data: bytes, following: list[dict[str, Any]]) -> None:
        """Import a file; it must be refused if one of the loads that follow fails."""
        fails = False
        for step in following:
            if step["do"]["op"] == "write_raw":
                break
            fails = fails or "Storage" in str(step["result"])
        before = self.exported(session)
        if not fails:
            self.memory.import_state(session, data)
            self.refused.discard(session)
            return
        with pytest.raises(sealog.InvalidStateError) as refused:
            self.memory.import_state(session, data)
        assert f"sessions/{session.encode().hex()}.json: {refused.value.field}: " in str(refused.value)
        assert self.exported(session) == before
        self.refused.add(session)
        self.written.clear()

    def exported(self, session: str) -> bytes | None:
        try:
            return self.memory.export_state(session)
        except sealog.SessionNotFoundError:
            return None

    def check_final(self, files: dict[str, Any]) -> None:
        sessions: set[tuple[str, str]] = set()
        for path, expected in files.items():
            root, _, name = path.rpartition("/sessions/")
            session = bytes.fromhex(pathlib.PurePath(name).stem).decode()
            self.root = root
            sessions.add((root, session))
            if session in self.refused and not self.written:
                self.not_applicable[-1] = REFUSED
            elif session in self.refused and not same_file(self.memory.export_state(session), expected):
                self.not_applicable[-1] = KEPT
            else:
                assert same_file(self.memory.export_state(session), expected)
        for root in self.roots:
            self.root = root
            for session in self.memory.session_ids():
                assert (root, session) in sessions
