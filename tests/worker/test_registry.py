"""A registration that is wrong is refused where it is written; payloads become what their handlers ask for."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pytest
from pydantic import BaseModel, ConfigDict

from reserve.worker import Job, Registry
from reserve.worker.payloads import Misfit, reader


class Mail(BaseModel):
    to: str
    copies: int = 1


@dataclass
class Point:
    x: int
    y: int


async def test_the_decorated_function_stays_what_it_is(jobs):
    async def send(job: Job[Mail]) -> None:
        pass

    assert jobs.handler("mail.send", payload=Mail, timeout_seconds=30)(send) is send
    handler = jobs.handlers["mail.send"]
    assert (handler.kind, handler.call, handler.timeout_seconds, handler.threaded) == ("mail.send", send, 30, False)


def test_functions_run_in_threads_and_whatever_is_async_in_the_loop(jobs):
    class Called:
        async def __call__(self, job):
            pass

    async def with_more(more, job):
        pass

    jobs.handler("sync")(lambda job: None)
    jobs.handler("object")(Called())
    jobs.handler("partial")(partial(with_more, 1))
    assert {kind: handler.threaded for kind, handler in jobs.handlers.items()} == {
        "sync": True,
        "object": False,
        "partial": False,
    }


def test_a_kind_has_one_handler(jobs):
    jobs.handler("a")(lambda job: None)
    with pytest.raises(ValueError, match=r"The kind 'a' has a handler already: tests\.worker"):
        jobs.handler(" a ")(lambda job: None)


@pytest.mark.parametrize("kind", ["", " ", "x" * 201, "a\0"])
def test_a_kind_that_no_job_can_have_is_refused(jobs, kind):
    with pytest.raises(ValueError, match="must"):
        jobs.handler(kind)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_timeout_is_above_nothing(jobs, seconds):
    with pytest.raises(ValueError, match="above 0"):
        jobs.handler("a", timeout_seconds=seconds)


def test_what_cannot_handle_a_job_is_refused(jobs):
    def yielding(job):
        yield

    async def yielding_too(job):
        yield

    class Class:
        pass

    for wrong in (yielding, yielding_too, Class, "text"):
        with pytest.raises(TypeError, match="A handler must"):
            jobs.handler("a")(wrong)
    assert not Registry().handlers


# --- payloads -----------------------------------------------------------------------------------------------


def test_models_dataclasses_and_plain_types_are_read():
    assert reader(Mail)({"to": "a"}) == Mail(to="a")
    assert reader(Point)({"x": 1, "y": 2}) == Point(1, 2)
    assert reader(list[int])([1, 2]) == [1, 2]
    assert reader(str | None)(None) is None


def test_payloads_are_read_as_json_also_by_strict_models():
    class At(BaseModel):
        model_config = ConfigDict(strict=True)
        at: datetime
        pair: tuple[int, int]

    read = reader(At)({"at": "2030-01-01T00:00:00Z", "pair": [1, 2]})
    assert (read.at, read.pair) == (datetime(2030, 1, 1, tzinfo=UTC), (1, 2))


def test_what_does_not_fit_is_named_and_not_repeated():
    with pytest.raises(Misfit) as misfit:
        reader(Mail)({"copies": "secret"})
    assert str(misfit.value) == (
        "The payload does not fit: /to: Field required; "
        "/copies: Input should be a valid integer, unable to parse string as an integer."
    )
    with pytest.raises(Misfit, match=r"fit: /a~1b/0: Input should be"):
        reader(dict[str, list[int]])({"a/b": ["x"]})
    with pytest.raises(Misfit, match=r"fit: /: Input should be"):
        reader(int)("x")
    with pytest.raises(Misfit, match=r"; and 40 more\.$"):
        reader(list[int])(["x"] * 50)
