"""How a list of requests becomes batches: each name once, and one bad request never spoils the others' batch."""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from reserve.errors import Contended, InvalidRequest, ReserveError

R = TypeVar("R")
A = TypeVar("A")


async def in_rounds(
    requests: Mapping[int, R],
    names: Callable[[R], Iterable[Hashable]],
    answer: Callable[[Mapping[int, R]], Awaitable[Mapping[int, A]]],
) -> list[A]:
    """Answer all requests, in batches in which each name occurs once; a repeat waits for the batch after."""
    answers: dict[int, A] = {}
    waiting = dict(requests)
    while waiting:
        batch: dict[int, R] = {}
        seen: set[Hashable] = set()
        for number, request in waiting.items():
            own = set(names(request))
            if seen.isdisjoint(own):
                batch[number] = request
            # Also when it waits: who comes after it under one of its names must not overtake it.
            seen |= own
        given = await answer(batch)
        assert given.keys() == batch.keys(), "each request of a batch has its answer"
        answers |= given
        waiting = {number: request for number, request in waiting.items() if number not in batch}
    return [answers[number] for number in sorted(answers)]


async def answer_batch(
    batch: Mapping[int, R], attempt: Callable[[Mapping[int, R]], Awaitable[dict[int, A]]]
) -> dict[int, A | ReserveError]:
    """`attempt` the batch in one transaction; where one of its requests spoils that, each request on its own.

    Any other error is everybody's answer: where the database went away, the batch may have been committed, and running
    it again would place the holds that have no key a second time.
    """
    try:
        return {**await attempt(batch)}
    except ReserveError as error:
        if len(batch) == 1 or not is_of_one(error):
            return dict.fromkeys(batch, error)
    answers: dict[int, A | ReserveError] = {}
    for number, request in batch.items():
        try:
            answers |= await attempt({number: request})
        except ReserveError as error:
            answers[number] = error
    return answers


def is_of_one(error: ReserveError) -> bool:
    """Whether one request of a batch can have caused it: a race it keeps losing, a lock, a value refused."""
    return isinstance(error, Contended | InvalidRequest)
