"""Finishing jobs: complete, fail, release; each only by whoever has the token, and once.

Completions of a batch are one statement; what fails or is given back is locked by id, decided by `verdicts`, and
written. Locks jobs only.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from reserve.db.connection import Database, RunAgain
from reserve.errors import Contended, InvalidRequest, JobNotFound, LeaseLost, ReserveError, ValidationFailed
from reserve.jobs.checking import check_verdict, cut_error
from reserve.jobs.rows import Backoff, Complete, Fail, JobState, Release, Verdict
from reserve.jobs.verdicts import Decision, Held, decide, judge_repeat
from reserve.json_text import as_json_text
from reserve.settings import Settings


@dataclass(frozen=True, slots=True)
class Finished:
    """What a job has become; `run_at` where it is to run again."""

    job_id: int
    state: JobState
    run_at: datetime | None = None


Answer = Finished | ReserveError


async def finish_many(database: Database, verdicts: Sequence[Verdict]) -> list[Answer]:
    """Finish each job on its own, in order; one answer for each, `JobNotFound`, `LeaseLost`, `JobFinished` among them.

    Committed when this returns: one statement when all complete, else one transaction. A job that is named twice is
    decided by its first verdict, and the second is answered after it.
    """
    answers: dict[int, Answer] = {}
    rounds = _rounds(database, verdicts, answers)
    for batch in rounds:
        answers |= await _finish_batch(database, batch)
    return [answers[number] for number in range(len(verdicts))]


async def finish(database: Database, verdict: Verdict) -> Finished:
    """Finish one job. Raises `JobNotFound`, `LeaseLost`, `JobFinished`, `ValidationFailed`."""
    (answer,) = await finish_many(database, [verdict])
    if isinstance(answer, ReserveError):
        raise answer
    return answer


async def finish_in(database: Database, conn: AsyncConnection, verdict: Verdict) -> Finished:
    """As `finish`, in the transaction that `conn` is in: the job is finished if and when the caller commits."""
    check_verdict(verdict, database.settings)
    answer = (await _finish(database, conn, {0: verdict}))[0]
    if isinstance(answer, ReserveError):
        raise answer
    return answer


def _rounds(database: Database, verdicts: Sequence[Verdict], answers: dict[int, Answer]) -> list[dict[int, Verdict]]:
    """The verdicts in batches that name each job once; what is out of bounds is answered at once."""
    rounds: list[dict[int, Verdict]] = []
    times: dict[int, int] = {}
    for number, verdict in enumerate(verdicts):
        try:
            check_verdict(verdict, database.settings)
        except ValidationFailed as error:
            answers[number] = error
            continue
        time = times.get(verdict.job_id, 0)
        times[verdict.job_id] = time + 1
        if time == len(rounds):
            rounds.append({})
        rounds[time][number] = verdict
    return rounds


async def _finish_batch(database: Database, batch: Mapping[int, Verdict]) -> dict[int, Answer]:
    """One transaction; where one verdict spoils it, each on its own."""

    async def work(conn: AsyncConnection) -> dict[int, Answer]:
        return await _finish(database, conn, batch)

    try:
        completes = _completes(batch)
        if len(completes) == len(batch):

            async def statement(conn: AsyncConnection) -> set[int]:
                return await _complete(database, conn, completes)

            done = await database.transact_once(statement)
            answers = _as_answers(completes, done)
            rest = {number: verdict for number, verdict in batch.items() if number not in answers}
            if not rest:
                return answers
            return answers | await database.transact(lambda conn: _judge_rest(database, conn, rest))
        return await database.transact(work)
    except (Contended, InvalidRequest) as error:
        if len(batch) == 1:
            return dict.fromkeys(batch, error)
    answers = {}
    for number, verdict in batch.items():
        answers |= await _finish_batch(database, {number: verdict})
    return answers


async def _finish(database: Database, conn: AsyncConnection, batch: Mapping[int, Verdict]) -> dict[int, Answer]:
    """The whole batch in the transaction of `conn`."""
    completes = _completes(batch)
    answers: dict[int, Answer] = {}
    if completes:
        answers |= _as_answers(completes, await _complete(database, conn, completes))
    others = {number: verdict for number, verdict in batch.items() if not isinstance(verdict, Complete)}
    if others:
        answers |= await _fail_or_release(database, conn, others)
    rest = {number: verdict for number, verdict in batch.items() if number not in answers}
    return answers | await _judge_rest(database, conn, rest) if rest else answers


def _completes(batch: Mapping[int, Verdict]) -> dict[int, Complete]:
    return {number: verdict for number, verdict in batch.items() if isinstance(verdict, Complete)}


def _as_answers(completes: Mapping[int, Complete], done: set[int]) -> dict[int, Answer]:
    return {
        number: Finished(verdict.job_id, JobState.SUCCEEDED)
        for number, verdict in completes.items()
        if verdict.job_id in done
    }


async def _complete(database: Database, conn: AsyncConnection, completes: Mapping[int, Complete]) -> set[int]:
    """One statement; the ids of those that were held with their tokens."""
    cursor = await conn.execute(
        database.queries["job_complete"],
        {
            "ids": [verdict.job_id for verdict in completes.values()],
            "tokens": [verdict.token for verdict in completes.values()],
            "outputs": [
                None if verdict.output is None else as_json_text(verdict.output) for verdict in completes.values()
            ],
        },
    )
    return {row[0] for row in await cursor.fetchall()}


async def _fail_or_release(
    database: Database, conn: AsyncConnection, batch: Mapping[int, Verdict]
) -> dict[int, Answer]:
    """Lock, decide, write; the answers of those that were held with their tokens."""
    held = await lock_jobs(database, conn, [verdict.job_id for verdict in batch.values()])
    decided: dict[int, tuple[int, Decision]] = {}
    for number, verdict in batch.items():
        assert not isinstance(verdict, Complete), "completions have a statement of their own"
        job = held.get(verdict.job_id)
        if job is not None and job.is_held_with(verdict.token):
            decision = decide(_cut(verdict, database.settings), job, jitter=random.random())  # noqa: S311 -- jitter
            decided[number] = (verdict.job_id, decision)
    run_ats = await write_decisions(database, conn, dict(decided.values()), held)
    return {
        number: Finished(job_id, decision.state, run_ats.get(job_id)) for number, (job_id, decision) in decided.items()
    }


def _cut(verdict: Fail | Release, settings: Settings) -> Fail | Release:
    if isinstance(verdict, Release):
        return verdict
    error = cut_error(verdict.error, settings)
    return Fail(verdict.job_id, verdict.token, error, verdict.retry_in_seconds, verdict.discard)


async def lock_jobs(database: Database, conn: AsyncConnection, ids: Sequence[int]) -> dict[int, Held]:
    """Lock those of these jobs that are ready or running, by id; what they are under their locks."""
    cursor = await conn.execute(database.queries["job_lock"], {"ids": list(ids)})
    settings = database.settings
    default = Backoff(settings.job_backoff_first_seconds, settings.job_backoff_seconds_max)
    return {
        row[0]: Held(
            id=row[0],
            state=JobState(row[1]),
            rescued=row[2],
            token=row[3],
            max_attempts=row[4],
            failures=row[5],
            cancel_requested=row[6],
            backoff=default if row[7] is None else Backoff(row[7], row[8]),
        )
        for row in await cursor.fetchall()
    }


async def write_decisions(
    database: Database,
    conn: AsyncConnection,
    decisions: Mapping[int, Decision],
    held: Mapping[int, Held],
    *,
    tokens: Mapping[int, int] | None = None,
) -> dict[int, datetime]:
    """Write what locked jobs become, by id; when those that run again do so. `tokens` replaces those that end with."""
    run_ats: dict[int, datetime] = {}
    for name, states in _STATEMENTS.items():
        chosen = {job_id: each for job_id, each in decisions.items() if each.state in states}
        if not chosen:
            continue
        parameters: dict[str, Any] = {
            "ids": list(chosen),
            "errors": [each.error for each in chosen.values()],
            "failures": [each.failures for each in chosen.values()],
        }
        if name == "job_close":
            parameters["states"] = [each.state for each in chosen.values()]
            parameters["tokens"] = [(tokens or {}).get(job_id, held[job_id].token) for job_id in chosen]
        if name == "job_put_off":
            parameters["delays"] = [each.delay_seconds for each in chosen.values()]
        rows = await (await conn.execute(database.queries[name], parameters)).fetchall()
        assert {row[0] for row in rows} == chosen.keys(), "jobs that are locked are still there"
        if name != "job_close":
            run_ats |= {row[0]: row[1] for row in rows}
    return run_ats


#: Which statement writes what a job has become.
_STATEMENTS = {
    "job_close": {JobState.DISCARDED, JobState.CANCELLED},
    "job_put_off": {JobState.SCHEDULED},
    "job_give_back": {JobState.READY},
}


async def _judge_rest(database: Database, conn: AsyncConnection, batch: Mapping[int, Verdict]) -> dict[int, Answer]:
    """What verdicts are answered that met no job held with their token: the same again, lost, finished, unknown."""
    cursor = await conn.execute(
        database.queries["job_state"], {"ids": sorted({verdict.job_id for verdict in batch.values()})}
    )
    seen = {row[0]: (JobState(row[1]), row[2], row[3]) for row in await cursor.fetchall()}
    answers: dict[int, Answer] = {}
    for number, verdict in batch.items():
        if verdict.job_id not in seen:
            answers[number] = JobNotFound(f"There is no job {verdict.job_id}.")
            continue
        state, token, run_at = seen[verdict.job_id]
        if state is JobState.RUNNING and token == verdict.token:
            raise RunAgain("the job was extended while it was looked for")
        judged = judge_repeat(verdict, state, token)
        if isinstance(judged, ReserveError):
            answers[number] = judged
        else:
            answers[number] = Finished(verdict.job_id, judged, None if judged.finished else run_at)
    return answers


__all__ = ["Answer", "Finished", "LeaseLost", "finish", "finish_in", "finish_many", "lock_jobs", "write_decisions"]
