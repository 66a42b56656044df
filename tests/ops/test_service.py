"""A service takes turns for ever: at once after a full batch, later and later while it fails, and it ends drained."""

import asyncio

import pytest
from structlog.testing import capture_logs

from reserve.errors import Contended, Unavailable
from reserve.events import Event
from reserve.ops.service import Outcome, Service
from reserve.settings import load


class Scripted(Service):
    """A service whose turns are given, errors among them."""

    name = "scripted"
    done = Event.HOLDS_EXPIRED

    def __init__(self, *turns, stop_seconds_max=10.0):
        settings = load(_env_file=None, service_pause_seconds_max=30, stop_seconds_max=stop_seconds_max)
        super().__init__(settings, interval_seconds=1)
        self.turns = list(turns)

    async def run_once(self):
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn


IDLE = Outcome(0, full=False)


async def test_a_full_batch_means_again_now():
    service = Scripted(Outcome(500, full=True), IDLE)
    assert await service.turn() == 0
    assert await service.turn() > 0


async def test_otherwise_it_pauses_for_its_interval_give_or_take_a_fifth():
    service = Scripted(*[IDLE] * 200)
    pauses = [await service.turn() for _ in range(200)]
    assert 0.8 <= min(pauses) < 0.9
    assert 1.1 < max(pauses) <= 1.2


async def test_it_logs_what_it_did_once_for_a_row_of_full_batches_and_nothing_when_there_was_nothing():
    service = Scripted(Outcome(500, full=True), Outcome(500, full=True), Outcome(7, full=False), IDLE)
    with capture_logs() as logs:
        for _ in range(4):
            await service.turn()
    assert [(line["event"], line["count"], line["service"]) for line in logs] == [
        (Event.HOLDS_EXPIRED, 1007, "scripted"),
    ]


async def test_an_outage_is_logged_once_and_so_is_its_end():
    service = Scripted(*[Unavailable("The database does not answer.")] * 5, IDLE, IDLE)
    with capture_logs() as logs:
        for _ in range(7):
            await service.turn()
    assert [line["event"] for line in logs] == [Event.SERVICE_FAILED, Event.SERVICE_RECOVERED]
    assert logs[0]["error"] == "The database does not answer."
    assert logs[0]["log_level"] == "warning"
    assert logs[1]["failures"] == 5


async def test_another_kind_of_failure_is_another_line():
    service = Scripted(Unavailable("away"), Contended(), Unavailable("away"), Contended())
    with capture_logs() as logs:
        for _ in range(4):
            await service.turn()
    assert [line["code"] for line in logs] == ["unavailable", "contended"]


async def test_a_second_outage_is_logged_again():
    service = Scripted(Unavailable("away"), IDLE, Unavailable("away"))
    with capture_logs() as logs:
        for _ in range(3):
            await service.turn()
    assert [line["event"] for line in logs] == [
        Event.SERVICE_FAILED,
        Event.SERVICE_RECOVERED,
        Event.SERVICE_FAILED,
    ]


async def test_what_must_not_happen_does_not_end_it_either_and_is_logged_with_its_stack():
    fault = AssertionError("every line has its slot")
    service = Scripted(fault, IDLE)
    with capture_logs() as logs:
        await service.turn()
        await service.turn()
    assert logs[0]["log_level"] == "error"
    assert logs[0]["exc_info"] is fault
    assert logs[1]["event"] == Event.SERVICE_RECOVERED


async def test_pauses_double_while_it_fails_up_to_their_bound_and_are_short_again_after():
    service = Scripted(*[Unavailable("away")] * 2000, IDLE, Unavailable("away"))
    pauses = [await service.turn() for _ in range(2000)]
    assert 1.6 <= pauses[0] <= 2.4
    assert 3.2 <= pauses[1] <= 4.8
    assert all(24 <= pause <= 36 for pause in pauses[5:])
    await service.turn()
    assert await service.turn() <= 2.4


class Held(Service):
    """A service in the middle of a turn, which ends when the test says so."""

    name = "held"
    done = Event.HOLDS_EXPIRED

    def __init__(self, *, stop_seconds_max):
        super().__init__(load(_env_file=None, stop_seconds_max=stop_seconds_max), interval_seconds=1)
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = "not"

    async def run_once(self):
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "finished"
        return Outcome(3, full=False)


async def ended(task):
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_service_finishes_the_turn_that_is_running_and_says_what_it_did():
    service = Held(stop_seconds_max=10)
    with capture_logs() as logs:
        task = asyncio.create_task(service.run())
        await service.begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        service.may_end.set()
        await ended(task)
    assert service.ended == "finished"
    assert [line["event"] for line in logs] == [Event.SERVICE_STARTED, Event.HOLDS_EXPIRED, Event.SERVICE_STOPPED]


async def test_a_turn_that_takes_too_long_is_rolled_back():
    service = Held(stop_seconds_max=0)
    task = asyncio.create_task(service.run())
    await service.begun.wait()
    task.cancel()
    await ended(task)
    assert service.ended == "cancelled"


async def test_a_second_cancel_waits_for_nothing():
    service = Held(stop_seconds_max=3600)
    task = asyncio.create_task(service.run())
    await service.begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await ended(task)
    assert service.ended == "cancelled"
