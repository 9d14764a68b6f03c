"""How callers are answered: each exactly once, whatever their callbacks do."""

from __future__ import annotations

import logging
import math
import threading
from concurrent.futures import CancelledError, InvalidStateError
from typing import Any

import pytest

from sealog.actors.requests import AppendRequest, OneShot, ReplyFuture, Signal

from ...api.kit import SAFETY_S, Gate, Task


def raising(error: BaseException) -> Any:
    def callback(_: object) -> None:
        raise error

    return callback


# -- signals


def test_a_signal_that_was_set_before_does_not_wait() -> None:
    signal = Signal()
    signal.set()
    assert signal.wait(0)
    assert not signal.wait(0)


def test_setting_a_signal_twice_is_setting_it_once() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    assert signal.wait()
    assert not signal.wait(0)


def test_a_signal_wakes_a_waiter() -> None:
    signal = Signal()
    waiting = Task(signal.wait, SAFETY_S)
    signal.set()
    assert waiting.result()


@pytest.mark.parametrize("timeout_s", [-1, 0, -math.inf, math.nan])
def test_a_timeout_that_is_no_time_does_not_wait(timeout_s: float) -> None:
    assert not Signal().wait(timeout_s)


@pytest.mark.parametrize("timeout_s", [1e300, math.inf, threading.TIMEOUT_MAX * 2])
def test_a_timeout_longer_than_the_platform_can_wait_is_no_error(timeout_s: float) -> None:
    signal = Signal()
    signal.set()
    assert signal.wait(timeout_s)


# -- the reply of a blocking call


def test_a_one_shot_is_answered_once() -> None:
    reply = OneShot()
    assert not reply.wait(0)
    reply.succeed(7)
    reply.succeed(8)
    reply.fail(ValueError())
    assert reply.wait(None)
    assert reply.result() == 7


def test_a_one_shot_raises_its_error() -> None:
    reply = OneShot()
    reply.fail(ValueError("first"))
    reply.succeed(1)
    assert reply.wait(0)
    with pytest.raises(ValueError, match="first"):
        reply.result()


def test_a_caller_that_stops_waiting_gets_a_future_of_the_answer() -> None:
    reply = OneShot()
    future = reply.to_future()
    assert future.running()
    assert not future.cancel()
    reply.succeed(7)
    assert future.result(0) == 7


@pytest.mark.parametrize("failing", [False, True])
def test_the_future_of_an_answer_that_is_there_already_is_resolved(failing: bool) -> None:
    reply = OneShot()
    if failing:
        reply.fail(ValueError("failed"))
        assert isinstance(reply.to_future().exception(0), ValueError)
    else:
        reply.succeed(7)
        assert reply.to_future().result(0) == 7


def test_many_one_shots_are_answered_whenever_their_callers_stop_waiting() -> None:
    replies = [OneShot() for _ in range(2000)]
    futures = Task(lambda: [reply.to_future() for reply in replies])
    for number, reply in enumerate(replies):
        reply.succeed(number)
    assert [future.result(SAFETY_S) for future in futures.result()] == list(range(2000))


# -- the future of append_nowait


def test_a_future_is_resolved_once() -> None:
    future = ReplyFuture()
    assert future.start()
    future.succeed(7)
    future.succeed(8)
    future.fail(ValueError())
    assert future.result(0) == 7


def test_a_cancelled_future_is_not_started() -> None:
    future = ReplyFuture()
    assert future.cancel()
    assert not future.start()
    future.succeed(7)
    future.fail(ValueError())
    with pytest.raises(CancelledError):
        future.result(0)


def test_a_started_future_cannot_be_cancelled() -> None:
    future = ReplyFuture()
    assert future.start()
    assert not future.cancel()


def test_a_future_that_its_holder_resolved_is_not_started(caplog: pytest.LogCaptureFixture) -> None:
    future = ReplyFuture()
    future.set_result("abuse")
    caplog.set_level(logging.CRITICAL + 1, "concurrent.futures")
    assert not future.start()


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), ValueError("callback")]
)
@pytest.mark.parametrize("failing", [False, True])
def test_what_a_callback_raises_stays_with_the_callback(
    error: BaseException, failing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1, "concurrent.futures")
    future, called = ReplyFuture(), []
    future.add_done_callback(raising(error))
    future.add_done_callback(called.append)
    future.start()
    if failing:
        future.fail(OSError("disk"))
    else:
        future.succeed(7)
    assert future.done()
    assert called == [future], "a callback kept another one from being called"


def test_a_reply_is_not_an_answer_for_another() -> None:
    future = ReplyFuture()
    future.start()
    future.succeed(1)
    with pytest.raises(InvalidStateError):
        future.set_result(2)


def test_a_waiter_of_a_future_is_woken() -> None:
    future, gate = ReplyFuture(), Gate()

    def wait() -> Any:
        gate.pass_through()
        return future.result(SAFETY_S)

    waiting = Task(wait)
    gate.wait_reached()
    gate.open()
    future.start()
    future.succeed(7)
    assert waiting.result() == 7


# -- requests


def test_a_single_event_is_answered_with_its_position() -> None:
    reply = OneShot()
    AppendRequest((b"abc",), None, None, reply, single=True).succeed(4)
    assert reply.result() == 4


def test_a_batch_is_answered_with_its_range() -> None:
    reply = OneShot()
    request = AppendRequest((b"abc", b"de", b"f"), None, None, reply, single=False)
    assert request.size_bytes == 6
    assert request.positions is None
    request.first_position = 4
    assert request.positions == range(4, 7)
    request.succeed(4)
    assert reply.result() == range(4, 7)
