"""The made-up work of agents that the demo appends when it is given no transcript."""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

_TURNS: Final = 64
_ERROR_SHARE: Final = 0.1
_MODULES: Final = ("parser", "billing", "cache", "scheduler", "export", "session", "search", "mailer")
_THINGS: Final = (
    "an empty page",
    "a trailing comma",
    "an expired token",
    "two writers at once",
    "a time zone without a name",
    "a file that was renamed",
)
_TASKS: Final = (
    "{path} goes wrong with {thing}. Find out why, fix it, and add a test that would have caught it.",
    "Please review {path}. I do not trust what it does with {thing}; tell me what you would change.",
    "Since yesterday {path} is slow when it meets {thing}. Measure first, then make it fast again.",
    "Customers report that {thing} is not handled in {path}. What do we answer them?",
)
_THOUGHTS: Final = (
    "I will read {path} first, to see where {thing} enters, and then run the tests that cover it.",
    "The name says that {path} handles {thing}, but nothing on this way checks it. Let me look.",
    "Before I change {path} I want to see it fail: a small test with {thing} should be enough.",
)
_ANSWERS: Final = (
    (
        "The cause is in {path}, line {line}: {thing} is compared before it is normalised, so the branch "
        "below is never taken. I moved the check up and added a test that fails without the change. "
    ),
    (
        "{path} is right, its caller is not: it passes {thing} on although line {line} says it must not. "
        "I changed the caller, kept the signature, and ran all tests. "
    ),
    (
        "I could not make it fail. With {thing} the function returns at line {line}, as documented. "
        "If it happens again, the log of that run would tell more. "
    ),
)
_CODE: Final = (
    "def {name}(items: list[Item], limit: int = 100) -> Iterator[Item]:",
    "    for item in items[:limit]:",
    "        if item.expired_at is not None and item.expired_at <= now:",
    "            logger.info('%s left out: expired', item.id)",
    "            continue",
    "        yield replace(item, seen=item.seen + 1)",
    "    return {name}_rest(items, limit)",
)


class Record(NamedTuple):
    """One event to append."""

    kind: str
    text: str
    data: Any


def generated_turns(seed: int) -> list[Record]:
    """Return conversations of agents with their tools; the same seed gives the same."""
    rng = random.Random(seed)  # noqa: S311 — repeatable, not secret
    return [record for number in range(_TURNS) for record in _turn(rng, number)]


def _turn(rng: random.Random, number: int) -> list[Record]:
    module = rng.choice(_MODULES)
    line = rng.randrange(10, 900)
    words = {"path": f"src/{module}.py", "thing": rng.choice(_THINGS), "line": line, "name": module}
    call_id = f"call_{rng.getrandbits(48):012x}"
    tool, kind, result = _tool_run(rng, words)
    answer = "".join(text.format(**words) for text in rng.sample(_ANSWERS, rng.randrange(1, 4)))
    return [
        Record("user-message", rng.choice(_TASKS).format(**words), {"turn": number}),
        Record("assistant-message", rng.choice(_THOUGHTS).format(**words), {"turn": number}),
        Record(
            "tool-call",
            f"{tool}({words['path']!r})",
            {"turn": number, "id": call_id, "name": tool, "arguments": {"path": words["path"]}},
        ),
        Record(kind, result, {"turn": number, "id": call_id, "exit_code": int(kind == "tool-error")}),
        Record("assistant-message", answer.strip(), {"turn": number}),
    ]


def _tool_run(rng: random.Random, words: dict[str, Any]) -> tuple[str, str, str]:
    if rng.random() < _ERROR_SHARE:
        return "read_file", "tool-error", f"{words['path']}: no such file"
    if rng.random() < 0.5:  # noqa: PLR2004 — one of two tools
        code = [rng.choice(_CODE).format(**words) for _ in range(rng.randrange(5, 40))]
        lines = [f"{number:5}  {text}" for number, text in enumerate(code, words["line"])]
        return "read_file", "tool-result", "\n".join(lines)
    tests = [
        f"tests/test_{words['name']}.py::test_case_{case} {rng.choices(('PASSED', 'FAILED'), (9, 1))[0]}"
        for case in range(rng.randrange(3, 30))
    ]
    return "run_tests", "tool-result", "\n".join(tests)
