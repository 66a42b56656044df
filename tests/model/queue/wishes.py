"""What may be wished of the queue, drawn at random; and the settings under which it is."""

from collections.abc import Iterable

from hypothesis import strategies as st

from reserve.jobs.rows import Complete, Fail, JobState, Release
from reserve.unset import UNSET
from tests.model.queue.expected import Model

LANES = ("mail", "bills")
WORKERS = ("anna", "ben")

#: No two of these and of the steps of the clock add up to the same, so that nothing lapses or falls due in a step.
SETTINGS = {
    "job_rescues_max": 2,
    "job_attempts_max": 3,
    "job_backoff_first_seconds": 130,
    "job_backoff_seconds_max": 260,
    "job_lease_seconds": 1700,
}
lease_seconds = st.sampled_from([1100, 5300])
steps_of_the_clock = st.sampled_from([10, 600, 4000])

which = st.integers(0, 19)
some = st.lists(which, min_size=1, max_size=3)
lanes = st.sampled_from(LANES)
workers = st.sampled_from(WORKERS)
kinds = st.sampled_from(["send", "print"])

#: lane, kind, priority, delay_seconds, max_attempts
jobs = st.tuples(
    lanes,
    kinds,
    st.integers(-1, 1),
    st.sampled_from([None, None, None, 0, 700]),
    st.sampled_from([None, None, 1, 2]),
)

#: The verb, and what it says beside the job and the token.
verdicts = st.one_of(
    st.just((Complete,)),
    st.tuples(st.just(Complete), st.sampled_from([1, {"a": []}])),
    st.tuples(st.just(Fail), st.sampled_from(["e", "f"]), st.sampled_from([None, None, 0, 300]), st.booleans()),
    st.tuples(st.just(Release), st.sampled_from([0, 0, 500])),
)
progress = st.sampled_from([UNSET, None, {"done": 1}])


def job_of(model: Model, which: int) -> int:
    """Mostly one that lives, counted from the newest; sometimes any; rarely one that is not there."""
    living = [job.id for job in model.jobs.values() if not job.state.finished]
    known = living if living and which < 13 else list(model.jobs)
    return known[-1 - which % len(known)] if known and which < 19 else 4711


def held_of(model: Model, tokens: Iterable[tuple[int, int]], which: int) -> tuple[int, int]:
    """A job with a token: its holder's, one that was somebody's before, any that ever was, or one that never was."""
    every = list(tokens)
    jobs = model.jobs
    held = [(job.id, job.token) for job in jobs.values() if job.is_held_with(job.token)]
    lost = [(job_id, token) for job_id, token in every if jobs[job_id].token > token]
    taken = [each for each in lost if jobs[each[0]].state is JobState.RUNNING]
    known = (which < 9 and held) or (which < 14 and taken) or (which < 16 and lost) or every
    if known and which < 18:
        return known[-1 - which % len(known)]
    job_id = job_of(model, which)
    job = jobs.get(job_id)
    return job_id, 1 if job is None else max(0, job.token + 2 * which - 37)
