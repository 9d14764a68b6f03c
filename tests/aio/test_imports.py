"""What is imported, and when; the loops that are told apart; the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from typing import TYPE_CHECKING

import sealog.aio

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from .loops import Backend

USE = """
import asyncio, sys, tempfile
import sealog.aio

async def main():
    async with await sealog.aio.open(tempfile.mkdtemp()) as store:
        session = await store.create_session("s")
        await session.append("m", "x")
        assert [event.text async for event in session.events()] == ["x"]
        async with session.subscribe() as subscription:
            assert (await subscription.get())[0] == 0

asyncio.run(main(), debug=True)
"""


def run(script: str, *, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", script],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Executing ")]
    assert (done.returncode, lines) == (0, [])
    return done.stdout


def test_importing_the_package_does_not_import_this_one() -> None:
    run("import sys, sealog\nassert 'asyncio' not in sys.modules\nassert 'sealog.aio' not in sys.modules")


def test_importing_this_one_does_not_import_trio() -> None:
    run("import sys, sealog.aio\nassert 'trio' not in sys.modules\nassert 'anyio' not in sys.modules")


def test_asyncio_works_where_trio_cannot_be_imported() -> None:
    hook = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("trio", "anyio", "sniffio"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
"""
    run(f"{hook}{USE}assert 'trio' not in sys.modules")


def test_asyncio_works_while_trio_is_being_imported(
    asyncio_loop: Backend, store: sealog.aio.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        session = await store.create_session("s")
        assert await session.append("m", "x") == 0

    lowlevel = types.ModuleType("trio.lowlevel")
    half, empty = types.ModuleType("trio"), types.ModuleType("trio")
    half.__dict__["lowlevel"] = lowlevel
    for number, module in enumerate((None, empty, half)):
        monkeypatch.setitem(sys.modules, "trio", module)
        if number == 0:
            asyncio_loop.run(main)
        else:
            asyncio_loop.run(store.describe, "s")


def test_asyncio_works_where_trio_is_imported_and_does_not_run() -> None:
    run(f"import trio\n{USE}")


def test_the_example_of_the_documentation_works(repository: Path, tmp_path: Path) -> None:
    text = (repository / "docs" / "aio.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert run(example, cwd=tmp_path).splitlines() == ["0 hello", "1 world", "2 events, sealed"]


def test_the_example_of_the_module_is_that_of_the_documentation() -> None:
    assert "async with await sealog.aio.open(" in (sealog.aio.__doc__ or "")
