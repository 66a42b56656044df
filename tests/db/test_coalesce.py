"""Coalescing, without a database: who shares a batch with whom, and whose trouble is whose."""

import asyncio

import pytest

from reserve.db.coalesce import Coalescer
from reserve.errors import Contended, Overloaded


class Desk:
    """Doubles numbers in batches, each of which ends when it is told to."""

    def __init__(self, **bounds):
        self.batches = []
        self.ends = []
        self.together = Coalescer(self._work, **{"batch_max": 100, "batches_max": 1, "waiting_max": 1000} | bounds)

    async def _work(self, requests):
        self.batches.append(list(requests))
        end = asyncio.get_running_loop().create_future()
        self.ends.append(end)
        if (error := await end) is not None:
            raise error
        return [Contended(str(each)) if each < 0 else each * 2 for each in requests]

    def ask(self, *requests):
        return [asyncio.create_task(self.together.ask(each)) for each in requests]

    async def until_batches(self, count):
        while len(self.batches) < count:
            await asyncio.sleep(0)

    def end(self, number, error=None):
        self.ends[number].set_result(error)


async def turns(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_lone_request_is_not_delayed():
    desk = Desk()
    (asked,) = desk.ask(4)
    await desk.until_batches(1)
    desk.end(0)
    assert await asked == 8
    assert desk.batches == [[4]]


async def test_what_is_asked_in_one_turn_shares_the_first_batch():
    desk = Desk()
    asked = desk.ask(1, 2, 3)
    await desk.until_batches(1)
    desk.end(0)
    assert await asyncio.gather(*asked) == [2, 4, 6]
    assert desk.batches == [[1, 2, 3]]


async def test_what_comes_while_a_batch_runs_shares_the_next_in_order_of_arrival():
    desk = Desk()
    asked = desk.ask(1)
    await desk.until_batches(1)
    for each in (2, 3, 4):
        asked += desk.ask(each)
        await turns()
    desk.end(0)
    await desk.until_batches(2)
    desk.end(1)
    assert await asyncio.gather(*asked) == [2, 4, 6, 8]
    assert desk.batches == [[1], [2, 3, 4]]


async def test_a_batch_is_bounded_and_the_rest_comes_next():
    desk = Desk(batch_max=2)
    asked = desk.ask(1, 2, 3, 4, 5)
    for number in range(3):
        await desk.until_batches(number + 1)
        desk.end(number)
    assert await asyncio.gather(*asked) == [2, 4, 6, 8, 10]
    assert desk.batches == [[1, 2], [3, 4], [5]]


async def test_so_many_batches_run_at_once_and_no_more():
    desk = Desk(batch_max=1, batches_max=2)
    asked = desk.ask(1, 2, 3)
    await desk.until_batches(2)
    await turns()
    assert desk.batches == [[1], [2]]
    desk.end(1)
    await desk.until_batches(3)
    desk.end(0)
    desk.end(2)
    assert await asyncio.gather(*asked) == [2, 4, 6]


async def test_more_than_may_wait_are_refused():
    desk = Desk(batch_max=1, waiting_max=2)
    first = desk.ask(1)
    await desk.until_batches(1)
    waiting = desk.ask(2, 3)
    await turns()
    with pytest.raises(Overloaded):
        await desk.together.ask(4)
    for number in range(3):
        await desk.until_batches(number + 1)
        desk.end(number)
    assert await asyncio.gather(*first, *waiting) == [2, 4, 6]


async def test_an_error_among_the_answers_is_its_requests_alone():
    desk = Desk()
    asked = desk.ask(1, -2, 3)
    await desk.until_batches(1)
    desk.end(0)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["2", "-2", "6"]
    assert isinstance(answers[1], Contended)


async def test_what_a_batch_raises_is_the_answer_of_all_in_it_and_of_nobody_else():
    desk = Desk()
    asked = desk.ask(1, 2)
    await desk.until_batches(1)
    later = desk.ask(3)
    await turns()
    desk.end(0, ZeroDivisionError("no"))
    await desk.until_batches(2)
    desk.end(1)
    answers = await asyncio.gather(*asked, *later, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ZeroDivisionError, ZeroDivisionError, int]


async def test_whoever_gives_up_before_its_batch_has_asked_for_nothing():
    desk = Desk()
    asked = desk.ask(1)
    await desk.until_batches(1)
    asked += desk.ask(2, 3)
    await turns()
    asked[1].cancel()
    desk.end(0)
    await desk.until_batches(2)
    desk.end(1)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [answers[0], answers[2]] == [2, 6]
    assert isinstance(answers[1], asyncio.CancelledError)
    assert desk.batches == [[1], [3]]


async def test_whoever_gives_up_in_its_batch_takes_nobody_along():
    desk = Desk()
    asked = desk.ask(1, 2)
    await desk.until_batches(1)
    asked[0].cancel()
    await turns()
    desk.end(0)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1] == 4


async def test_when_all_who_waited_have_given_up_no_batch_begins():
    desk = Desk()
    asked = desk.ask(1)
    await desk.until_batches(1)
    given_up = desk.ask(2, 3)
    await turns()
    for each in given_up:
        each.cancel()
    desk.end(0)
    await asyncio.gather(*asked, *given_up, return_exceptions=True)
    await desk.together.drain()
    assert desk.batches == [[1]]


async def test_draining_waits_for_all_that_was_asked():
    desk = Desk(batch_max=1)
    asked = desk.ask(1, 2)
    await desk.until_batches(1)
    draining = asyncio.create_task(desk.together.drain())
    await turns()
    desk.end(0)
    await desk.until_batches(2)
    assert not draining.done()
    desk.end(1)
    await draining
    assert [each.result() for each in asked] == [2, 4]
    await desk.together.drain()


async def test_a_batch_that_is_cancelled_cancels_those_in_it():
    desk = Desk()
    asked = desk.ask(1, 2)
    await desk.until_batches(1)
    for batch in desk.together._batches:
        batch.cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {asyncio.CancelledError}
    (later,) = desk.ask(3)
    await desk.until_batches(2)
    desk.end(1)
    assert await later == 6
