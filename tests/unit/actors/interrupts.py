"""Interrupts at every place where CPython looks for signals."""

from __future__ import annotations

import dis
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class Interrupter:
    """Raises KeyboardInterrupt at the n-th place in some files where a signal handler could.

    Places are the entry of a function, a jump back, and the end of a call of something written in C.
    """

    def __init__(self, at: int, files: tuple[str, ...]) -> None:
        self.left = at
        self._files = files
        self._after_call: dict[FrameType, bool] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_back is not None:
            self._after_call[frame.f_back] = False  # a call of Python code ends without a look at signals
        if not frame.f_code.co_filename.endswith(self._files):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "call":
            self._reach()
        elif event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if self._after_call.get(frame) or "JUMP_BACKWARD" in name:
                self._reach()
            self._after_call[frame] = name.startswith("CALL")
        return self

    def _reach(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt


def interrupted(at: int, call: Callable[[], object], *files: str) -> bool:
    """Call with an interrupt at the n-th place in these files; False if there were fewer places."""
    interrupter = Interrupter(at, files or ("actors/mailbox.py",))
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return interrupter.left < 0
