"""How a list of requests becomes batches; pure but for the functions it is given."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reserve.errors import Contended, InvalidRequest, NotMigrated, Overloaded, ReserveError, Unavailable
from reserve.inventory.batches import answer_batch, in_rounds

names = st.lists(st.lists(st.sampled_from("abcde"), max_size=3), max_size=12)


def rounds_of(requests):
    """The batches that `in_rounds` makes, as lists of numbers, and its answers."""
    batches = []

    async def answer(batch):
        batches.append(list(batch))
        return {number: f"answer {number}" for number in batch}

    answers = asyncio.run(in_rounds(dict(enumerate(requests)), lambda request: request, answer))
    return batches, answers


def test_a_repeat_waits_for_the_batch_after_and_nobody_else_does():
    batches, answers = rounds_of(["a", "b", "a", "", "a"])
    assert batches == [[0, 1, 3], [2], [4]]
    assert answers == [f"answer {number}" for number in range(5)]


def test_who_waits_is_not_overtaken_under_any_of_its_names():
    batches, _ = rounds_of(["a", "ab", "b"])
    assert batches == [[0], [1], [2]]


@given(names)
def test_each_request_is_answered_once_and_each_name_is_in_a_batch_once(requests):
    batches, answers = rounds_of(requests)
    assert sorted(number for batch in batches for number in batch) == list(range(len(requests)))
    assert answers == [f"answer {number}" for number in range(len(requests))]
    for batch in batches:
        used = [name for number in batch for name in set(requests[number])]
        assert len(used) == len(set(used))


@given(names)
def test_requests_with_a_common_name_keep_their_order(requests):
    batches, _ = rounds_of(requests)
    turn = {number: index for index, batch in enumerate(batches) for number in batch}
    for later, own in enumerate(requests):
        for earlier in range(later):
            if set(requests[earlier]) & set(own):
                assert turn[earlier] < turn[later]


def test_an_answer_that_is_missing_is_noticed():
    async def answer(batch):
        return {}

    with pytest.raises(AssertionError, match="each request"):
        asyncio.run(in_rounds({0: "a"}, lambda request: request, answer))


def attempts_of(error, batch=("good", "bad", "good")):
    """What `answer_batch` makes of a batch in which "bad" raises `error`, and which batches it tried."""
    tried = []

    async def attempt(some):
        tried.append(list(some))
        if "bad" in some.values():
            raise error
        return dict.fromkeys(some, "done")

    return asyncio.run(answer_batch(dict(enumerate(batch)), attempt)), tried


@pytest.mark.parametrize("error", [Contended(), InvalidRequest("no")])
def test_what_one_request_can_have_caused_is_its_own_answer_only(error):
    answers, tried = attempts_of(error)
    assert answers == {0: "done", 1: error, 2: "done"}
    assert tried == [[0, 1, 2], [0], [1], [2]]


@pytest.mark.parametrize("error", [Unavailable("away"), Overloaded("busy"), NotMigrated("run it")])
def test_what_is_nobodys_fault_is_everybodys_answer_and_nothing_runs_again(error):
    answers, tried = attempts_of(error)
    assert answers == dict.fromkeys(range(3), error)
    assert tried == [[0, 1, 2]]


def test_a_batch_of_one_is_tried_once():
    error: ReserveError = Contended()
    assert attempts_of(error, ["bad"]) == ({0: error}, [[0]])


def test_what_must_not_happen_is_not_an_answer():
    with pytest.raises(ZeroDivisionError):
        attempts_of(ZeroDivisionError())
