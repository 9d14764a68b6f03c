"""The code of docs/projections.md runs, and the public names are what they are said to be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from sealog import projections
from sealog.projections import acp, harness

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def blocks(repository: Path) -> list[str]:
    text = (repository / "docs" / "projections.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_examples_run(
    blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "docs/projections.md", "exec"), {"__name__": "docs"})
    assert capsys.readouterr().out.splitlines() == [
        "{'user-message': 1}",
        "True",
        "True",
        "fresh [AgentEntry(lines=['looks good'])]",
    ]


def test_the_projection_of_the_docs_has_ten_lines(blocks: list[str]):
    (body,) = re.findall(r"^class CountByKind.*?(?=^with)", blocks[0], re.DOTALL | re.MULTILINE)
    assert len([line for line in body.splitlines() if line.strip()]) <= 10


def test_public_names_are_exported():
    for name in projections.__all__:
        assert getattr(projections, name) is not None
    assert set(acp.__all__) | set(harness.__all__) <= set(projections.__all__)
    assert set(projections.__all__) - set(acp.__all__) - set(harness.__all__) == {
        "KeySpace",
        "Projection",
        "Transcript",
        "TranscriptMessage",
    }
    assert projections.__all__ == sorted(projections.__all__)
    own = {"HarnessMemory", "AcpSessions"}
    assert all(getattr(projections, name).__module__.startswith("sealog.projections") for name in own)
