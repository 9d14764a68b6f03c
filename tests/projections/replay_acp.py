"""Replaying the scenarios of the older ACP relay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import sealog
from sealog.projections.acp import AcpSessions, AgentEntry, SnapshotEntry, WorkerState

from .golden import agree, raw, same_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = "the file was refused when it was imported, so nothing is loaded from it"
LAYOUT = "where state is kept is sealog's own affair"
LOADS = {"load_worker_state", "load_session_id", "ready_for_startup", "look", "read_raw_state"}


class Instead:
    """What is right here where the older program is faulty."""

    def __init__(self, reason: str, ok: Any = None, *, error: type[BaseException] | None = None) -> None:
        self.reason = reason
        self.ok = ok
        self.error = error


def entries(given: list[dict[str, Any]]) -> list[SnapshotEntry]:
    made: list[SnapshotEntry] = []
    for entry in given:
        if "gen" in entry:
            first = entry["gen"]["from"]
            made += [AgentEntry([f"entry {at}"]) for at in range(first, first + entry["gen"]["count"])]
        else:
            made.append(msgspec.convert(entry, SnapshotEntry))
    return made


class AcpReplayer:
    """One scenario on sealog.

    Attributes:
        not_applicable: the steps that have no equal here, with the reason; -1 stands for final files.
        replaced: the steps whose result is another one here, with the reason.
    """

    def __init__(self, folder: Path, instead: dict[int, Instead], *, reopen_always: bool = False) -> None:
        self.folder = folder
        self.instead = instead
        self.reopen_always = reopen_always
        self.not_applicable: dict[int, str] = {}
        self.replaced: dict[int, str] = {}
        self.now_ms = 0
        self.store = sealog.open(folder / "RUNTIME")
        self.refused: set[str] = set()

    @property
    def acp(self) -> AcpSessions:
        return AcpSessions(self.store, clock_ms=lambda: self.now_ms)

    def close(self) -> None:
        self.store.close()

    def reopen(self) -> None:
        self.store.close()
        self.store = sealog.open(self.folder / "RUNTIME")

    def run(self, scenario: dict[str, Any]) -> None:
        steps = scenario["steps"]
        for index, step in enumerate(steps):
            do = dict(step["do"])
            operation = do.pop("op")
            if operation == "set_clock":
                self.now_ms = do["now_ms"] if "now_ms" in do else do["secs"] * 1000 + do["nanos"] // 10**6
            elif operation in {"write_raw_state", "fs_write"}:
                target = do["target"] if "target" in do else do["path"].split("/")[2]
                self.write_raw(target, raw(do), steps[index + 1 :])
            elif operation in {"resolve_path", "ls"}:
                self.not_applicable[index] = LAYOUT
            elif operation == "reopen":
                self.reopen()
            else:
                self.step(index, operation, do, step["result"])
            if self.reopen_always:
                self.reopen()
        self.check_final(scenario["final_files"])
        assert [path.name for path in self.folder.iterdir()] == ["RUNTIME"]

    def step(self, index: int, operation: str, do: dict[str, Any], result: dict[str, Any]) -> None:
        do.pop("dir")
        target = do.pop("target")
        instead = self.instead.get(index)
        if instead is not None:
            self.replaced[index] = instead.reason
            if instead.error is not None:
                with pytest.raises(instead.error):
                    self.call(operation, target, do)
                return
            result = {"ok": instead.ok}
        if target in self.refused and (operation in LOADS or "error" in result):
            self.not_applicable[index] = REFUSED
        elif operation == "read_raw_state" and instead is None:
            assert same_file(self.acp.export_state(target), result["ok"]), index
        else:
            assert agree(self.call(operation, target, do), result["ok"]), index
            if operation not in LOADS:
                self.refused.discard(target)

    def call(self, operation: str, target: str, do: dict[str, Any]) -> Any:
        acp = self.acp
        calls: dict[str, Callable[[], Any]] = {
            "persist_session_id": lambda: acp.persist_session_id(target, do["session_id"]),
            "persist_worker_state": lambda: acp.persist_worker_state(
                target, do["session_id"], WorkerState(do["worker_state"])
            ),
            "append": lambda: acp.append_entries(target, do["session_id"], entries(do["entries"])),
            "replace": lambda: acp.replace_entries(target, do["session_id"], entries(do["entries"])),
            "load_worker_state": lambda: acp.load_worker_state(target),
            "load_session_id": lambda: acp.load_session_id(target),
            "ready_for_startup": lambda: acp.ready_for_startup(target),
            "look": lambda: acp.look(target, do["requested_entries"], do["prime_timed_out"]),
            "read_raw_state": lambda: json.loads(acp.export_state(target)),
        }
        return msgspec.to_builtins(calls[operation]())

    def write_raw(self, target: str, data: bytes, following: list[dict[str, Any]]) -> None:
        """Import a file; it must be refused if the loads that follow fail."""
        fails = False
        for step in following:
            if step["do"]["op"] == "write_raw_state":
                break
            fails = fails or "error" in step["result"]
        before = self.exported(target)
        if not fails:
            self.acp.import_state(target, data)
            self.refused.discard(target)
            return
        with pytest.raises(sealog.InvalidStateError) as refused:
            self.acp.import_state(target, data)
        assert f"sessions/{target}/state.json: {refused.value.field}: " in str(refused.value)
        assert self.exported(target) == before
        self.refused.add(target)

    def exported(self, target: str) -> bytes | None:
        try:
            return self.acp.export_state(target)
        except sealog.SessionNotFoundError:
            return None

    def check_final(self, files: dict[str, Any]) -> None:
        instead = self.instead.get(-1)
        if instead is not None:
            self.replaced[-1] = instead.reason
            found = {target: json.loads(self.acp.export_state(target)) for target in self.acp.targets()}
            assert agree(found, instead.ok)
            return
        expected = {path.split("/", 2)[2].rpartition("/")[0]: file for path, file in files.items()}
        for target, file in expected.items():
            if target in self.refused:
                self.not_applicable[-1] = REFUSED
            else:
                assert same_file(self.acp.export_state(target), file)
        assert set(self.acp.targets()) <= set(expected)
