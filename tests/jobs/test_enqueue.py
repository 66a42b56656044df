"""Enqueueing: what a new job is, what is refused and where, and that many at once are each in there once."""

import asyncio
import math
from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest
from psycopg.rows import dict_row

from reserve.errors import Contended, ValidationFailed
from reserve.jobs import lanes
from reserve.jobs.enqueuing import enqueue, enqueue_in, enqueue_many
from reserve.jobs.rows import PRIORITY_MAX, Enqueue, JobState, LaneChange
from tests.jobs.yard import ids, mail
from tests.steps import until_waiting


async def faults(work):
    with pytest.raises(ValidationFailed) as raised:
        await work
    return [fault.pointer for fault in raised.value.faults]


# --- what a new job is --------------------------------------------------------------------------------------


async def test_a_new_job_is_what_it_was_said_to_be_and_reads_the_same(yard):
    job = await enqueue(yard.database, Enqueue(" mail ", "sénd", {"to": ["é", 1, 2.5, None]}, 7, max_attempts=3))
    assert job == await yard.get(job.id)
    assert (job.lane, job.kind, job.payload, job.priority, job.max_attempts) == (
        "mail",
        "sénd",
        {"to": ["é", 1, 2.5, None]},
        7,
        3,
    )
    assert job.state is JobState.READY
    assert job.run_at == job.created_at
    assert (job.attempt, job.failures, job.rescues, job.token) == (0, 0, 0, None)


async def test_what_is_not_said_is_the_lanes_else_the_services(open_yard):
    yard = await open_yard(job_attempts_max=9)
    assert (await yard.one()).max_attempts == 9
    await lanes.put(yard.database, "mail", LaneChange(max_attempts=4))
    assert (await yard.one()).max_attempts == 4
    assert (await yard.one(max_attempts=2)).max_attempts == 2
    job = await yard.one()
    assert (job.payload, job.priority) == ({}, 0)


async def test_jobs_have_their_ids_in_the_order_in_which_they_were_given(yard):
    jobs = await enqueue_many(yard.database, [mail(n, f"lane {n % 3}", delay_seconds=n % 2 * 100) for n in range(2500)])
    assert [job.payload["n"] for job in jobs] == list(range(2500))
    assert ids(jobs) == sorted(set(ids(jobs)))
    assert {(job.payload["n"] % 2, job.state) for job in jobs} == {(0, "ready"), (1, "scheduled")}


async def test_a_later_time_is_scheduled_and_one_that_has_passed_is_at_once(yard):
    later = datetime.now(UTC) + timedelta(hours=1)
    job = await yard.one(run_at=later.astimezone(timezone(timedelta(hours=9))))
    assert (job.state, job.run_at) == ("scheduled", later)
    past = await yard.one(run_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))))
    assert (past.state, past.run_at) == ("ready", past.created_at)
    delayed = await yard.one(delay_seconds=90.5)
    assert (delayed.state, delayed.run_at) == ("scheduled", delayed.created_at + timedelta(seconds=90.5))
    assert (await yard.one(delay_seconds=0)).state == "ready"


async def test_nothing_to_enqueue_is_nothing(yard):
    assert await enqueue_many(yard.database, []) == []
    assert await enqueue_in(yard.conn, [], namespace=yard.namespace) == []


# --- what is refused ----------------------------------------------------------------------------------------

NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 -- it is wrong on purpose

WRONG = {
    "/lane": [Enqueue("", "k"), Enqueue("x" * 201, "k"), Enqueue("a\0b", "k"), Enqueue("\ud800", "k")],
    "/kind": [Enqueue("l", " "), Enqueue("l", "k" * 201), Enqueue("l", "a\nb")],
    "/payload": [
        Enqueue("l", "k", math.nan),
        Enqueue("l", "k", {"a": "\0"}),
        Enqueue("l", "k", ["\udfff"]),
        Enqueue("l", "k", b"bytes"),
        Enqueue("l", "k", "x" * 256 * 2**10),
        Enqueue("l", "k", "é" * 128 * 2**10),
    ],
    "/priority": [Enqueue("l", "k", priority=PRIORITY_MAX + 1), Enqueue("l", "k", priority=-PRIORITY_MAX - 1)],
    "/run_at": [
        Enqueue("l", "k", run_at=NAIVE),
        Enqueue("l", "k", run_at=datetime(2020, 1, 1, tzinfo=UTC), delay_seconds=1),
        Enqueue("l", "k", run_at=datetime.max.replace(tzinfo=UTC)),
    ],
    "/delay_seconds": [Enqueue("l", "k", delay_seconds=each) for each in (-0.1, math.nan, math.inf, 366 * 86_400 + 1)],
    "/max_attempts": [Enqueue("l", "k", max_attempts=each) for each in (0, 101, 1.5)],
}


@pytest.mark.parametrize("pointer", WRONG)
async def test_what_is_out_of_bounds_is_named_and_nothing_is_written(yard, pointer):
    for wrong in WRONG[pointer]:
        assert await faults(enqueue(yard.database, wrong)) == [pointer]
        assert await faults(enqueue_many(yard.database, [mail(), wrong, mail(), wrong])) == [
            f"/1{pointer}",
            f"/3{pointer}",
        ]
        assert await faults(enqueue_in(yard.conn, [wrong], namespace=yard.namespace)) == [pointer]
    assert await yard.fetch("select name from {ns}.lane") == []


async def test_the_bounds_themselves_are_inside(yard):
    largest = {"a": "x" * (256 * 2**10 - 8)}
    jobs = await enqueue_many(
        yard.database,
        [
            Enqueue("l" * 200, "k" * 200, largest, PRIORITY_MAX, delay_seconds=366 * 86_400, max_attempts=100),
            Enqueue("l", "k", "\\u0000", -PRIORITY_MAX, max_attempts=1),
        ],
    )
    assert [await yard.get(job.id) == job for job in jobs] == [True, True]


async def test_every_fault_of_one_job_is_named(yard):
    wrong = Enqueue("", "", priority=10**6, max_attempts=0, delay_seconds=-1)
    assert await faults(enqueue(yard.database, wrong)) == [
        "/lane",
        "/kind",
        "/priority",
        "/max_attempts",
        "/delay_seconds",
    ]


# --- many at once -------------------------------------------------------------------------------------------


async def test_calls_at_once_share_transactions_and_each_has_its_own_job(yard):
    await yard.one()
    jobs = await asyncio.gather(*(enqueue(yard.database, mail(n, priority=n % 5)) for n in range(400)))
    assert [job.payload["n"] for job in jobs] == list(range(400))
    assert len(set(ids(jobs))) == 400
    assert all([await yard.get(job.id) == job for job in jobs[::50]])
    ((transactions,),) = await yard.fetch("select count(distinct xmin::text) from {ns}.job")
    assert transactions < 20


async def test_a_bad_one_among_good_ones_is_its_callers_alone(yard):
    answers = await asyncio.gather(
        *(enqueue(yard.database, mail(n, priority=10**6 if n == 5 else 0)) for n in range(10)), return_exceptions=True
    )
    assert [n for n, answer in enumerate(answers) if isinstance(answer, ValidationFailed)] == [5]
    assert await yard.fetch("select count(*) from {ns}.job") == [(9,)]


async def test_one_that_the_database_refuses_does_not_spoil_its_batch(yard):
    """By a check that the edge does not know."""
    await yard.one()
    await yard.execute(
        "create function {ns}.refuse() returns trigger language plpgsql as $$ begin "
        "raise exception 'no' using errcode = '22023'; end $$; "
        "create trigger refuse before insert on {ns}.job for each row when (new.kind = 'bad') "
        "execute function {ns}.refuse()"
    )
    kinds = ["good", "bad", "good", "good"]
    answers = await asyncio.gather(
        *(enqueue(yard.database, Enqueue("mail", kind)) for kind in kinds), return_exceptions=True
    )
    assert [isinstance(answer, Exception) for answer in answers] == [False, True, False, False]
    assert await yard.fetch("select count(*) from {ns}.job where kind = 'good'") == [(3,)]


async def test_new_lanes_by_many_at_once_come_to_be_once(yard):
    jobs = await asyncio.gather(*(enqueue(yard.database, mail(n, f"lane {n % 4}")) for n in range(20)))
    assert [(job.lane, job.payload["n"]) for job in jobs] == [(f"lane {n % 4}", n) for n in range(20)]
    many = await asyncio.gather(
        *(enqueue_many(yard.database, [mail(n, f"new {m}") for m in (n % 5, 9 - n % 5)]) for n in range(20))
    )
    assert sum(map(len, many)) == 40
    names = [name for (name,) in await yard.fetch("select name from {ns}.lane order by name")]
    assert names == [f"lane {n}" for n in range(4)] + [f"new {n}" for n in range(10)]
    assert await yard.fetch("select count(*) from {ns}.job") == [(60,)]


async def test_a_lane_that_cannot_be_added_now_enqueues_nobody_twice(open_yard):
    """Fails where the batch is tried again one by one after the jobs of the other lanes are committed."""
    yard = await open_yard(lock_wait_seconds=0.1)
    await yard.one()
    other = await yard.begin()
    await other.execute(f"insert into {yard.namespace}.lane (name, created_at) values ('new', now())")
    answers = await asyncio.gather(
        *(enqueue(yard.database, mail(n, lane)) for n, lane in enumerate(["mail", "new", "mail", "newer"])),
        return_exceptions=True,
    )
    assert [getattr(answer, "lane", type(answer)) for answer in answers] == ["mail", Contended, "mail", "newer"]
    assert await yard.fetch("select count(*) from {ns}.job") == [(4,)]


async def test_who_gives_up_waiting_does_not_take_the_others_along(yard):
    calls = [asyncio.create_task(enqueue(yard.database, mail(n))) for n in range(5)]
    await asyncio.sleep(0)
    calls[2].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if isinstance(answer, asyncio.CancelledError)] == [2]
    assert len({job.id for n, job in enumerate(answers) if n != 2}) == 4


# --- in the caller's own transaction ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"row_factory": dict_row}, {"cursor_factory": psycopg.AsyncRawCursor}])
async def test_a_callers_transaction_commits_the_job_with_its_own_write(yard, options):
    caller = await yard.plain(**options)
    await yard.execute("create table {ns}.purchase (id bigint)")
    async with caller.transaction():
        await caller.execute(f"insert into {yard.namespace}.purchase values (1)")
        jobs = await enqueue_in(
            caller, [mail(0, "mail"), mail(1, "bills"), mail(2, "mail", delay_seconds=60)], namespace=yard.namespace
        )
        assert await yard.fetch("select id from {ns}.job") == []
        assert await yard.claim() == []
    assert [await yard.get(job.id) == job for job in jobs] == [True] * 3
    assert ids(await yard.claim(5)) == [jobs[0].id]
    assert await yard.fetch("select count(*) from {ns}.purchase") == [(1,)]


async def test_a_callers_transaction_that_rolls_back_has_enqueued_nothing(yard):
    caller = await yard.plain()
    with pytest.raises(ZeroDivisionError):
        async with caller.transaction():
            await enqueue_in(caller, [mail()], namespace=yard.namespace)
            raise ZeroDivisionError
    assert await yard.fetch("select id from {ns}.job union all select id from {ns}.lane") == []


async def test_a_callers_settings_are_the_bounds_and_the_defaults(yard):
    caller = await yard.plain()
    settings = yard.database.settings.model_copy(update={"job_attempts_max": 3, "job_payload_bytes_max": 10})
    (job,) = await enqueue_in(caller, [Enqueue("mail", "send")], namespace=yard.namespace, settings=settings)
    assert job.max_attempts == 3
    large = [Enqueue("mail", "send", "x" * 20)]
    assert await faults(enqueue_in(caller, large, namespace=yard.namespace, settings=settings)) == ["/payload"]


async def test_a_caller_that_adds_a_lane_is_waited_for_by_others_of_that_lane(yard):
    caller = await yard.plain()
    await enqueue_in(caller, [mail(0, "new")], namespace=yard.namespace)
    other = asyncio.create_task(enqueue(yard.database, mail(1, "new")))
    await until_waiting(yard.conn)
    await caller.commit()
    assert (await other).lane == "new"
    assert await yard.fetch("select count(*) from {ns}.job") == [(2,)]
