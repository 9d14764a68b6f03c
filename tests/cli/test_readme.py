"""The README says what is so: its example works when pasted, its links lead somewhere, its names exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

import sealog
from sealog.cli.commands import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def example(readme: str) -> str:
    (found,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return found


def check_output(output: str) -> None:
    # Two threads print at once, so their line ends may come late.
    assert sorted(re.findall(r"(?:ada|bob): on disk, at position (\d)", output)) == list("123456")
    lines = output.splitlines()
    assert "0 user-message Compare the two reports. None" in lines
    assert "8 events, SHA-256 of the log:" in output
    assert lines[-1] == "table.csv text/csv b'name,sum\\nada,1\\n'"


def test_the_example_works_as_a_program(example, tmp_path):
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    check_output(done.stdout)


def test_the_example_works_when_pasted_into_an_interpreter(example, tmp_path):
    done = subprocess.run(
        [sys.executable, "-q", "-i", "-W", "error"],
        cwd=tmp_path,
        input=f"{example}\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Error" not in done.stderr
    check_output(done.stdout)


def test_links_lead_somewhere(readme, repository):
    targets = re.findall(r"\]\(([^)#:]+)\)", readme)
    assert {"docs/format.md", "docs/recovery.md", "docs/invariants.md", "docs/limits.md"} <= set(targets)
    assert [target for target in targets if not (repository / target).exists()] == []


def test_every_error_it_names_exists(readme, repository):
    text = readme + (repository / "docs" / "limits.md").read_text(encoding="utf-8")
    own = set(re.findall(r"`(?:sealog\.)?([A-Z]\w+Error)`", text)) - {"LookupError", "ValueError"}
    own -= {"TimeoutError", "OSError"}
    assert own
    assert [name for name in sorted(own) if not hasattr(sealog, name)] == []


def test_it_names_every_command(readme):
    assert tuple(re.findall(r"^\| `sealog (\w+)", readme, re.MULTILINE)) == COMMANDS


def test_set_up_is_two_commands_of_one_line(readme):
    set_up = readme.split("## Set-up")[1].split("\n## ")[0]
    assert [line.strip() for line in set_up.splitlines() if line.startswith("    ")] == [
        "python3 -m venv .venv && .venv/bin/pip install -e '.[cli]' && .venv/bin/sealog demo",
        ".venv/bin/pip install -e '.[dev]' && .venv/bin/pytest",
    ]


def test_the_changelog_knows_the_version(repository):
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    headings = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert headings[:2] == ["Unreleased", project["version"]]
    assert set(re.findall(r"^### (.+)", changelog, re.MULTILINE)) <= {
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    }
