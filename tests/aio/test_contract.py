"""The async classes have the names and signatures of the blocking ones; each difference has a reason."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import sealog
import sealog.aio
from sealog import projections

PAIRS: list[tuple[Any, Any]] = [
    (getattr(blocking, name), getattr(sealog.aio, name))
    for blocking, names in (
        (sealog, ("Store", "Session", "SealedSession", "Subscription")),
        (projections, ("HarnessMemory", "AcpSessions")),
    )
    for name in names
]

ONLY_BLOCKING = {
    "Session.offer": "what append is made of",
    "Session.withdraw": "what append is made of",
    "Session.follow": "what subscribe is made of",
    "SealedSession.follow": "what subscribe is made of",
    "Session.__reduce__": "a handle holds a blocking one, which refuses to be pickled",
    "SealedSession.__reduce__": "as above",
    "Store.__reduce__": "as above",
    "Store.__del__": "the blocking one warns",
    "Session.__del__": "the blocking one unpins",
    "SealedSession.__del__": "the blocking one unpins",
    "Session.__slots__": "implementation",
    "SealedSession.__slots__": "implementation",
}
ONLY_ASYNC = {
    "Store.blocking": "for threads, and for what takes a blocking store",
}
NOT_AWAITED = {
    "Store.stats": "looks at memory only",
    "Store.overview": "an async iterator",
    "Session.append_nowait": "never waits",
    "Session.close": "gives up the handle, nothing is waited for",
    "SealedSession.close": "as above",
    "Session.events": "an async iterator",
    "SealedSession.events": "an async iterator",
    "Session.attachments": "an async iterator",
    "SealedSession.attachments": "an async iterator",
    "Session.subscribe": "returns an async iterator",
    "SealedSession.subscribe": "returns an async iterator",
    "Session.__getitem__": "returns an awaitable",
    "SealedSession.__getitem__": "returns an awaitable",
    "Session.__len__": "Python does not await it",
    "SealedSession.__len__": "Python does not await it",
    "Subscription.close": "wakes who waits, and does not wait",
}
ASYNC_NAMES = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__iter__": "__aiter__",
    "__next__": "__anext__",
}
IGNORED = {"__init__", "__repr__", "__module__", "__doc__", "__weakref__", "__dict__", "__slotnames__"}
ids = [blocking.__name__ for blocking, _ in PAIRS]


def members(thing: Any) -> dict[str, Any]:
    """List what a class shows, with what it inherits from ours."""
    found: dict[str, Any] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("sealog"):
            found.update(vars(base))
    return {
        name: value
        for name, value in found.items()
        if name not in IGNORED and (not name.startswith("_") or name.endswith("__"))
    }


def signature(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS, ids=ids)
def test_names_are_the_same(blocking: Any, asynchronous: Any) -> None:
    name = blocking.__name__
    here = {f"{name}.{ASYNC_NAMES.get(member, member)}" for member in members(blocking)}
    there = {f"{name}.{member}" for member in members(asynchronous)}
    assert here - there == {entry for entry in ONLY_BLOCKING if entry in here - there}
    assert there - here == {entry for entry in ONLY_ASYNC if entry.startswith(f"{name}.")}


@pytest.mark.parametrize(("blocking", "asynchronous"), PAIRS, ids=ids)
def test_signatures_are_the_same(blocking: Any, asynchronous: Any) -> None:
    theirs = members(asynchronous)
    for name, member in members(blocking).items():
        other = theirs.get(ASYNC_NAMES.get(name, name))
        if other is None or (name.startswith("__") and name not in ("__getitem__", "__len__")):
            continue
        place = f"{blocking.__name__}.{name}"
        assert isinstance(member, property) == isinstance(other, property), place
        if isinstance(member, property):
            continue
        assert signature(member) == signature(other), place
        assert inspect.iscoroutinefunction(other) == (place not in NOT_AWAITED), place


def test_the_doors_are_the_same_but_for_the_file_system() -> None:
    assert signature(sealog.open)[:-1] == signature(sealog.aio.open)
    assert signature(sealog.open)[-1][0] == "file_system"
    assert inspect.iscoroutinefunction(sealog.aio.open)


@pytest.mark.parametrize("class_name", ["HarnessMemory", "AcpSessions"])
def test_constructors_of_projections_are_the_same(class_name: str) -> None:
    ours = getattr(sealog.aio, class_name)
    assert signature(ours) == signature(getattr(projections, class_name))


def test_the_lists_of_differences_name_nothing_that_is_gone() -> None:
    known = {f"{blocking.__name__}.{name}" for blocking, _ in PAIRS for name in vars(blocking)}
    known |= {f"{blocking.__name__}.{name}" for blocking, _ in PAIRS for name in dir(blocking)}
    assert (ONLY_BLOCKING.keys() | NOT_AWAITED.keys()) <= known


def test_all_is_exact() -> None:
    classes = {
        name: value
        for name, value in vars(sealog.aio).items()
        if inspect.isclass(value) and not name.startswith("_")
    }
    made_here = {name for name, value in classes.items() if value.__module__ == "sealog.aio"}
    assert made_here <= set(sealog.aio.__all__)
    assert set(sealog.aio.__all__) == {asynchronous.__name__ for _, asynchronous in PAIRS} | {"open"}


@pytest.mark.parametrize("name", sealog.aio.__all__)
def test_everything_has_a_docstring(name: str) -> None:
    thing = getattr(sealog.aio, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        for member, value in members(thing).items():
            if not member.startswith("__"):
                assert inspect.getdoc(value), member
