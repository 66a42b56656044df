"""Random histories of the queue with two workers: every answer is the model's, and after each step so is every job.

On copies of the code that were broken on purpose it has found, in seconds: completions or failures without their token
in the condition, extensions without it or without `rescued`, a rescue that counts a failure or does not count itself, a
release that counts a failure, a retry that keeps the failures, a discard by hand that leaves the token, a scan that
looks neither at higher priorities nor from the start before it says *empty*, and a renewed lease that `RescueScan` has
passed. In a minute or so, where chance will have it: a claim without `run_at` in its order, and a cancelled job that is
not cancelled when it fails.
"""

import asyncio
from dataclasses import fields

import psycopg
import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from reserve.errors import ReserveError
from reserve.jobs import claiming, enqueuing, finishing, lanes, leases, managing
from reserve.jobs.claiming import RescueScan, Scan
from reserve.jobs.finishing import Finished
from reserve.jobs.rows import Enqueue, Extend, Job, JobFilter, JobState, LaneChange, Lease
from tests.model.queue import wishes
from tests.model.queue.expected import Expected, Model, Window
from tests.model.queue.seen import Sight, compare, kind_of
from tests.model.world import EXAMPLES, open_world

S = JobState


class Queue(RuleBasedStateMachine):
    def __init__(self, world, sight: Sight) -> None:
        super().__init__()
        self.world = world
        self.sight = sight
        self.database = world.database
        self.model = Model(self.database.settings)
        self.tokens: dict[tuple[int, int], str] = {}
        self.scans = {(worker, lane): Scan() for worker in wishes.WORKERS for lane in wishes.LANES}
        self.rescues = RescueScan()
        sight.clear()

    def ask(self, work):
        """Run it alone; its answer, an expected error among them, and when it ran."""

        async def running():
            try:
                return await work
            except ReserveError as error:
                return error

        low = self.sight.clock()
        answer = self.world.run(running())
        note(f"  {answer}")
        return answer, Window(low, self.sight.clock())

    def clocked(self, step) -> Window:
        low = self.sight.clock()
        step()
        return Window(low, self.sight.clock())

    def look(self) -> None:
        compare(self.model.jobs, self.sight.see())

    # --- enqueue and claim ----------------------------------------------------------------------------------

    def _enqueue(self, drawn, *, at_once: bool) -> None:
        jobs = [
            Enqueue(lane, kind, {"n": len(self.model.jobs) + n}, priority, None, delay, max_attempts)
            for n, (lane, kind, priority, delay, max_attempts) in enumerate(drawn)
        ]

        async def together():
            return await asyncio.gather(*(enqueuing.enqueue(self.database, job) for job in jobs))

        answer, now = self.ask(together() if at_once else enqueuing.enqueue_many(self.database, jobs))
        assert [(job.lane, job.kind, job.payload, job.priority) for job in answer] == [
            (job.lane, job.kind, job.payload, job.priority) for job in jobs
        ]
        for job, wish in sorted(zip(answer, jobs, strict=True), key=lambda pair: pair[0].id):
            self.model.enqueue(job, wish.delay_seconds, wish.max_attempts, now)
        self.look()
        assert [self._as_job(self.model.jobs[job.id]) for job in answer] == answer

    @initialize(jobs=st.lists(wishes.jobs, min_size=2, max_size=8), limit=st.integers(1, 3))
    def begin_with_jobs_that_run(self, jobs, limit):
        self._enqueue(jobs, at_once=False)
        for lane in wishes.LANES:
            self._claim(lane, "anna", limit, fresh=False)

    @rule(jobs=st.lists(wishes.jobs, min_size=1, max_size=5), at_once=st.booleans())
    def enqueue(self, jobs, at_once):
        self._enqueue(jobs, at_once=at_once)

    @rule(
        lane=wishes.lanes,
        worker=wishes.workers,
        limit=st.integers(1, 4),
        fresh=st.sampled_from([False, False, True]),
        lease_seconds=st.none() | wishes.lease_seconds,
    )
    def claim(self, lane, worker, limit, fresh, lease_seconds):
        self._claim(lane, worker, limit, fresh=fresh, lease_seconds=lease_seconds)

    def _claim(self, lane, worker, limit, *, fresh, lease_seconds=None) -> None:
        scan = self.scans[worker, lane]
        scan._from_start_at = float("-inf" if fresh else "inf")
        answer, now = self.ask(
            claiming.claim(self.database, lane, worker, limit=limit, lease_seconds=lease_seconds, scan=scan)
        )
        seconds = lease_seconds or self.database.settings.job_lease_seconds
        expected = self.model.claim(lane, worker, limit, now, fresh=fresh, lease_seconds=seconds)
        assert [each.id for each in answer] == expected
        self.look()
        for each in answer:
            job = self.model.jobs[each.id]
            assert (each.id, each.token) not in self.tokens, "nobody ever had it with this token"
            self.tokens[each.id, each.token] = worker
            same = {field.name for field in fields(each)} - {"idempotency_key"}
            assert {name: getattr(each, name) for name in same} == {name: getattr(job, name) for name in same}

    # --- by the holder --------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(said=st.lists(st.tuples(wishes.which, wishes.verdicts), min_size=1, max_size=4))
    def finish(self, said):
        verdicts = [verb(*wishes.held_of(self.model, self.tokens, which), *rest) for which, (verb, *rest) in said]
        note(str(verdicts))
        answers, now = self.ask(finishing.finish_many(self.database, verdicts))
        assert [kind_of(answer) for answer in answers] == [self.model.finish(verdict, now) for verdict in verdicts]
        self.look()
        for answer in answers:
            if isinstance(answer, Finished):
                assert answer.run_at == (None if answer.state.finished else self.model.jobs[answer.job_id].run_at)

    @precondition(lambda self: self.model.jobs)
    @rule(
        said=st.lists(
            st.tuples(wishes.which, wishes.lease_seconds, wishes.progress),
            min_size=1,
            max_size=3,
            unique_by=lambda each: each[0],
        )
    )
    def extend(self, said):
        # Of one job that is named twice the last word counts, which is tested elsewhere.
        last = {
            wishes.held_of(self.model, self.tokens, which): (seconds, progress) for which, seconds, progress in said
        }
        extends = [Extend(*held, *rest) for held, rest in last.items()]
        answers, now = self.ask(leases.extend_many(self.database, extends))
        assert [kind_of(answer) for answer in answers] == [self.model.extend(wish, now) for wish in extends]
        self.look()
        for answer in answers:
            if isinstance(answer, Lease):
                job = self.model.jobs[answer.job_id]
                assert (answer.token, answer.lease_expires_at) == (job.token, job.lease_expires_at)

    # --- time -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self._in(S.RUNNING, S.SCHEDULED))
    @rule(
        passes=wishes.some | wishes.steps_of_the_clock,
        sweeps=st.sampled_from(["", "", "rescue", "due", "due rescue"]),
        limit=st.integers(1, 5),
    )
    def let_time_pass(self, passes, sweeps, limit):
        """For all, or for some whose leases lapse and whose time comes; the sweeps look then, or not yet."""
        if isinstance(passes, int):
            self.sight.forward(passes)
        else:
            self._lapse(passes)
            self._fall_due(passes)
        self.look()
        if "due" in sweeps:
            answer, now = self.ask(claiming.make_due_ready(self.database, limit=limit))
            assert answer == self.model.make_due_ready(limit, now)
            self.look()
        if "rescue" in sweeps:
            self._rescue(limit)

    def _lapse(self, which: list[int]) -> None:
        running = self._in(S.RUNNING)
        lapsed = {running[each % len(running)].id for each in which if running}
        now = self.clocked(lambda: self.sight.lapse(list(lapsed)))
        for job_id in lapsed:
            self.model.jobs[job_id].lease_expires_at = now.later(-1)

    def _fall_due(self, which: list[int]) -> None:
        scheduled = self._in(S.SCHEDULED)
        due = list(dict.fromkeys(scheduled[each % len(scheduled)].id for each in which if scheduled))
        now = self.clocked(lambda: self.sight.fall_due(due))
        for number, job_id in enumerate(due, 1):
            self.model.jobs[job_id].run_at = now.later(number - 100)

    def _rescue(self, limit: int) -> None:
        answer, now = self.ask(claiming.rescue(self.database, limit=limit, scan=self.rescues))
        assert (answer.ready, answer.discarded, answer.cancelled) == self.model.rescue(limit, now)
        self.look()

    @precondition(lambda self: self._in(S.RUNNING))
    @rule(worker=wishes.workers, limit=st.integers(1, 4))
    def lose_all_to_one_worker(self, worker, limit):
        """All leases lapse, and somebody claims what is ready again."""
        self.sight.forward(6000)
        self._rescue(10)
        for lane in wishes.LANES:
            self._claim(lane, worker, limit, fresh=True)

    def _in(self, *states: JobState) -> list[Expected]:
        return [job for job in self.model.jobs.values() if job.state in states]

    # --- by hand --------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(verb=st.sampled_from(["cancel", "cancel", "retry", "retry", "discard"]), which=wishes.which)
    def change(self, verb, which):
        job_id = wishes.job_of(self.model, which)
        answer, now = self.ask(getattr(managing, verb)(self.database, job_id))
        assert kind_of(answer) == getattr(self.model, verb)(job_id, now)
        self.look()
        if isinstance(answer, Job):
            assert answer == self._as_job(self.model.jobs[job_id])

    @precondition(lambda self: self._in(S.DISCARDED))
    @rule(kind=st.none() | wishes.kinds, limit=st.integers(1, 3))
    def retry_discarded(self, kind, limit):
        lane = self._in(S.DISCARDED)[0].lane
        answer, now = self.ask(managing.retry_discarded(self.database, lane, kind=kind, limit=limit))
        assert kind_of(answer) == self.model.retry_discarded(lane, kind, limit, now)
        self.look()

    @precondition(lambda self: len(self.tokens) > 2)
    @rule(lane=wishes.lanes, paused=st.sampled_from([False, False, True]))
    def pause_or_resume(self, lane, paused):
        (answer, created), _ = self.ask(lanes.put(self.database, lane, LaneChange(paused=paused)))
        assert (answer.paused, created) == (paused, lane not in self.model.paused)
        self.model.paused[lane] = paused
        self.look()

    # --- reading --------------------------------------------------------------------------------------------

    def _as_job(self, job: Expected) -> Job:
        values = {field.name: getattr(job, field.name, None) for field in fields(Job)}
        return Job(**values | {"token": job.token if job.state is S.RUNNING else None})

    @rule(
        lane=st.none() | wishes.lanes,
        state=st.none() | st.sampled_from(S),
        kind=st.none() | wishes.kinds,
        limit=st.integers(1, 4),
    )
    def read(self, lane, state, kind, limit):
        chosen = {"lane": lane, "state": state, "kind": kind}
        expected = [
            self._as_job(job)
            for _, job in sorted(self.model.jobs.items(), reverse=True)
            if all(value in {None, getattr(job, name)} for name, value in chosen.items())
        ]
        found, after = [], None
        while True:
            page, _ = self.ask(managing.find(self.database, JobFilter(**chosen), after=after, limit=limit))
            found += page.items
            if not page.more:
                break
            after = found[-1].id
        assert found == expected
        for seen in self.world.run(lanes.find(self.database, after=None, limit=10)).items:
            for name in ("ready", "scheduled", "running", "discarded"):
                assert getattr(seen, name) == len(self.model.of(seen.name, S(name)))


@pytest.fixture(scope="module")
def queue_world(database_url):
    with open_world(database_url, **wishes.SETTINGS) as world, psycopg.connect(database_url, autocommit=True) as conn:
        yield world, Sight(conn, world.database.namespace)


# Hypothesis makes a history that fails smaller for up to five minutes.
@pytest.mark.timeout(360 + 120 * EXAMPLES)
def test_every_history_of_the_queue_agrees_with_the_model(queue_world):
    run_state_machine_as_test(
        lambda: Queue(*queue_world),
        settings=settings(max_examples=max(1, round(80 * EXAMPLES)), stateful_step_count=40),
    )
