"""Finishing many at once, what is kept of what a holder says, and finishing in a caller's own transaction."""

from datetime import timedelta

import pytest

from reserve.errors import JobFinished, JobNotFound, LeaseLost, ValidationFailed
from reserve.jobs.finishing import finish, finish_in, finish_many
from reserve.jobs.rows import Complete, Fail, Release
from tests.jobs.yard import ids, kinds

# --- many ---------------------------------------------------------------------------------------------------


async def test_verdicts_of_all_kinds_are_answered_in_order_and_none_spoils_another(yard):
    await yard.enqueue(8, max_attempts=1)
    held = await yard.claim(8)
    await yard.lapse(held[6])
    await yard.rescue()
    verdicts = [
        Release(held[0].id, held[0].token),
        Complete(held[1].id, held[1].token, {"n": 1}),
        Complete(4711, 1),
        Fail(held[2].id, held[2].token, "e"),
        Complete(held[3].id, held[3].token + 1),
        Complete(held[3].id, held[3].token, "\0"),
        Release(held[4].id, held[4].token, 1e12),
        Complete(held[5].id, held[5].token),
        Complete(held[6].id, held[6].token),
        Fail(held[7].id, held[7].token, "e", -1),
        Complete(held[5].id, held[5].token),
        Complete(2**70, 1),
        Fail(held[4].id, 2**70, "e"),
    ]
    assert kinds(await finish_many(yard.database, verdicts)) == [
        "ready",
        "succeeded",
        JobNotFound,
        "discarded",
        LeaseLost,
        ValidationFailed,
        ValidationFailed,
        "succeeded",
        "succeeded",
        ValidationFailed,
        "succeeded",
        ValidationFailed,
        ValidationFailed,
    ]
    assert [await yard.state(each) for each in held] == [
        "ready",
        "succeeded",
        "discarded",
        "running",
        "running",
        "succeeded",
        "succeeded",
        "running",
    ]


async def test_many_completions_are_one_statement_and_each_keeps_its_own_output(yard):
    await yard.enqueue(1000)
    held = await yard.claim(1000)
    answers = await finish_many(yard.database, [Complete(each.id, each.token, each.id) for each in reversed(held)])
    assert kinds(answers) == ["succeeded"] * 1000
    assert [answer.job_id for answer in answers] == ids(held)[::-1]
    assert await yard.fetch(
        "select count(*), count(distinct xmin::text) from {ns}.job_finished where output::text = id::text"
    ) == [(1000, 1)]


async def test_completions_with_one_that_is_lost(yard):
    await yard.enqueue(3)
    held = await yard.claim(3)
    await yard.discard(held[1])
    answers = await finish_many(yard.database, [Complete(each.id, each.token) for each in held])
    assert kinds(answers) == ["succeeded", LeaseLost, "succeeded"]


async def test_no_verdicts_are_no_answers(yard):
    assert await finish_many(yard.database, []) == []


async def test_the_first_of_two_verdicts_on_one_job_decides(yard):
    held = await yard.running()
    verdicts = [Complete(held.id, held.token, 1), Fail(held.id, held.token, "e"), Complete(held.id, held.token, 2)]
    assert kinds(await finish_many(yard.database, verdicts)) == ["succeeded", JobFinished, "succeeded"]
    assert (await yard.get(held.id)).output == 1


# --- what is kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a\0b\ud800c\udfffd", "a\N{REPLACEMENT CHARACTER}b?c?d"),
        ("x" * 100, "x" * 100),
        ("", ""),
        ("a" * 25 + "b" * 1000 + "c" * 50, "a" * 25 + " … " + "c" * 50),
        ("🍵" * 101, "🍵" * 25 + " … " + "🍵" * 50),
    ],
)
async def test_an_error_is_kept_whatever_it_says_and_never_too_long(open_yard, said, kept):
    yard = await open_yard(job_error_length_max=100)
    held = await yard.running()
    await yard.fail(held, said)
    assert (await yard.get(held.id)).error == kept
    assert len(kept) <= 100


@pytest.mark.parametrize("output", ["\0", "\ud800", float("nan"), {"a": b"b"}, "x" * 2**20])
async def test_an_output_that_cannot_be_kept_is_refused_and_the_job_runs_on(yard, output):
    held = await yard.running()
    with pytest.raises(ValidationFailed) as raised:
        await yard.complete(held, output)
    assert [fault.pointer for fault in raised.value.faults] == ["/output"]
    assert await yard.state(held) == "running"
    await yard.complete(held)


@pytest.mark.parametrize(
    ("verdict", "pointer"),
    [
        (lambda *held: Fail(*held, "e", -1), "/retry_in_seconds"),
        (lambda *held: Fail(*held, "e", float("inf")), "/retry_in_seconds"),
        (lambda *held: Fail(*held, "e", 366 * 86_400 + 1), "/retry_in_seconds"),
        (lambda *held: Release(*held, -0.5), "/delay_seconds"),
        (lambda *held: Release(*held, float("nan")), "/delay_seconds"),
    ],
)
async def test_a_delay_out_of_bounds_is_refused(yard, verdict, pointer):
    held = await yard.running()
    with pytest.raises(ValidationFailed) as raised:
        await finish(yard.database, verdict(held.id, held.token))
    assert [fault.pointer for fault in raised.value.faults] == [pointer]
    async with yard.database.transaction() as conn:
        with pytest.raises(ValidationFailed):
            await finish_in(yard.database, conn, verdict(held.id, held.token))


# --- in the caller's transaction ----------------------------------------------------------------------------


async def test_a_job_is_finished_if_and_when_the_callers_transaction_commits(yard):
    held = await yard.running()
    with pytest.raises(ZeroDivisionError):
        async with yard.database.transaction() as conn:
            assert (await finish_in(yard.database, conn, Complete(held.id, held.token))).state == "succeeded"
            raise ZeroDivisionError
    assert await yard.state(held) == "running"
    async with yard.database.transaction() as conn:
        await finish_in(yard.database, conn, Complete(held.id, held.token))
        assert await yard.state(held) == "running"
    assert await yard.state(held) == "succeeded"


async def test_a_second_run_after_a_forced_end_makes_no_second_side_effect(yard):
    """The first run's session is ended in the middle of its transaction; its lease lapses, and another finds the job.

    A third tries with the first run's token, and its writes go with it.
    """
    await yard.execute("create table {ns}.shipped (job_id bigint, by text)")
    ship = f"insert into {yard.namespace}.shipped values (%s, %s)"
    held = await yard.running()
    with pytest.raises(Exception, match=r"terminat|closed|does not answer"):
        async with yard.database.transaction() as conn:
            await conn.execute(ship, [held.id, "anna"])
            await finish_in(yard.database, conn, Complete(held.id, held.token))
            await yard.fetch("select pg_terminate_backend(%s)", conn.info.backend_pid)
    await yard.lapse(held)
    assert (await yard.rescue()).ready == 1
    (second,) = await yard.claim(worker="ben")
    assert second.id == held.id
    async with yard.database.transaction() as conn:
        await conn.execute(ship, [second.id, "ben"])
        await finish_in(yard.database, conn, Complete(second.id, second.token))
    with pytest.raises(LeaseLost):
        async with yard.database.transaction() as conn:
            await conn.execute(ship, [held.id, "anna"])
            await finish_in(yard.database, conn, Complete(held.id, held.token))
    assert await yard.fetch("select * from {ns}.shipped") == [(held.id, "ben")]
    assert await yard.state(held) == "succeeded"


async def test_a_job_runs_for_as_long_as_it_took(yard):
    held = await yard.running()
    await yard.fetch(
        "update {ns}.job set started_at = started_at - interval '1 hour' where id = %s returning id", held.id
    )
    await yard.complete(held)
    job = await yard.get(held.id)
    assert job.finished_at - job.started_at > timedelta(hours=1)
