"""docs/commands.md is what the program says, and help is a page that fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

import sealog
from sealog.cli.commands import COMMANDS, app
from sealog.cli.messages import ADVICE
from sealog.cli.reference import reference

PAGES = [*((name,) for name in COMMANDS), ("quarantine", "ls"), ("quarantine", "show"), ("quarantine", "rm")]


def test_the_reference_is_up_to_date(repository):
    stored = (repository / "docs" / "commands.md").read_text(encoding="utf-8")
    assert stored == reference(), "run: python -m sealog.cli.reference > docs/commands.md"


def test_the_reference_has_every_command():
    text = reference()
    for page in PAGES:
        assert f"# sealog {' '.join(page)}\n" in text


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [60, 80])
def test_every_page_fits_and_says_what_it_takes(monkeypatch, capsys, page, width):
    monkeypatch.setenv("COLUMNS", str(width))
    get_command(app).main([*page, "--help"], prog_name="sealog", standalone_mode=False)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    assert text.startswith(f"Usage: sealog {' '.join(page)} [OPTION]...")
    assert "--store DIR" in text or page == ("quarantine",)


def test_every_advice_that_is_reworded_is_given_by_the_library():
    package = Path(sealog.__file__).parent
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("storage", "actors", "formats")
        for path in (package / folder).glob("*.py")
    )
    joined = "".join(part.strip().strip('"f') for part in sources.split("\n"))
    assert [advice for advice in ADVICE if advice not in joined and advice not in sources] == []
