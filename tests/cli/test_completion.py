"""The shell completes commands, ids of sessions and names of formats, and is never told an error."""

from __future__ import annotations

import pytest


def complete(run, words: str, **environment: str) -> list[str]:
    at = str(len(words.split(" ")) - 1)
    done = run(_SEALOG_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=at, **environment)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sealog quar", ["quarantine"]),
        ("sealog show agent", ["agent-1", "agent-2", "agent-3"]),
        ("sealog verify agent-1 agent", ["agent-2", "agent-3"]),
        ("sealog grep x agent-2", ["agent-2"]),
        ("sealog quarantine ls agent-3", ["agent-3"]),
        ("sealog show other", []),
        ("sealog export --format ht", ["html"]),
        ("sealog import --format sw", ["swe-agent"]),
    ],
)
def test_completion(run, store, words, expected):
    assert complete(run, words, SEALOG_STORE=str(store)) == expected


def test_the_store_may_be_given_on_the_line(run, store):
    assert complete(run, f"sealog show --store {store} agent-1") == ["agent-1"]


@pytest.mark.parametrize("place", ["", "nowhere", "."])
def test_without_a_store_there_is_nothing(run, tmp_path, place):
    assert complete(run, "sealog show agent", SEALOG_STORE=place and str(tmp_path / place)) == []


def test_completion_can_be_shown(run):
    assert "--install-completion" in run("--help").stdout
