"""The calls on single jobs and their list, as they are routed and documented."""

from collections.abc import Awaitable, Callable
from typing import Final

from reserve import errors
from reserve.db.connection import Database
from reserve.jobs.rows import JobState
from reserve.web import job_examples as examples
from reserve.web import job_shapes as shapes
from reserve.web import jobs
from reserve.web.answers import Answer
from reserve.web.call import BODY, BUSY, LATER, PAGE, READ, Call, Errors, QueryParameter, Success
from reserve.web.examples import EMPTY_BODY
from reserve.web.incoming import Incoming
from reserve.web.job_requests import JobCompleteBody, JobExtendBody, JobFailBody, JobReleaseBody
from reserve.web.requests import EmptyBody

_KNOWN: Final[Errors] = (*BODY, errors.IdempotencyKeyReused, errors.JobNotFound)
_FENCED: Final[Errors] = (*_KNOWN, errors.LeaseLost, errors.JobFinished, *LATER)


def _job_success(example: object, description: str, shape: type = shapes.JobShape) -> tuple[Success, ...]:
    return (Success(200, description, shape, example, ("Idempotent-Replayed",)),)


def _managing(
    verb: str,
    answer: Callable[[Database, Incoming], Awaitable[Answer]],
    description: str,
    success: tuple[Success, ...],
) -> Call:
    """A verb of whoever looks after jobs: without a token, and without a body."""
    return Call(
        "POST",
        f"/v1/jobs/{{id}}/{verb}",
        answer,
        "Jobs",
        f"{verb.capitalize()} a job",
        description,
        success,
        (*_KNOWN, errors.JobFinished, *LATER),
        body=EmptyBody,
        body_example=EMPTY_BODY,
        body_optional=True,
        idempotency_key="accepted",
    )


JOB_CALLS: Final = (
    Call(
        "GET",
        "/v1/jobs/{id}",
        jobs.get_job,
        "Jobs",
        "Read a job",
        "Also when it has finished, until it is pruned.",
        (Success(200, "The job.", shapes.JobShape, examples.JOB_SUCCEEDED),),
        (errors.InvalidRequest, errors.JobNotFound, *BUSY),
    ),
    Call(
        "GET",
        "/v1/jobs",
        jobs.list_jobs,
        "Jobs",
        "List jobs",
        "Newest first.",
        (Success(200, "A page of jobs.", shapes.JobListShape, examples.JOB_LIST),),
        READ,
        query=(
            QueryParameter("lane", "Only jobs of this lane."),
            QueryParameter("state", "Only jobs in this state.", values=tuple(JobState)),
            QueryParameter("kind", "Only jobs of this kind."),
            *PAGE,
        ),
    ),
    Call(
        "POST",
        "/v1/jobs/{id}/complete",
        jobs.complete_job,
        "Jobs",
        "Complete a job",
        "Also after the lease lapsed, as long as nobody else has claimed it. Said again, the answer is the same.",
        _job_success(examples.JOB_SUCCEEDED, "The job, succeeded."),
        _FENCED,
        body=JobCompleteBody,
        body_example=examples.COMPLETE_BODY,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/jobs/{id}/fail",
        jobs.fail_job,
        "Jobs",
        "Fail a job",
        "Counts a failure: tried again after a pause; discarded when that was its last attempt or `discard` says so.",
        _job_success(examples.JOB_FAILED, "The job: scheduled, ready, discarded, or cancelled where that was asked."),
        _FENCED,
        body=JobFailBody,
        body_example=examples.FAIL_BODY,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/jobs/{id}/extend",
        jobs.extend_job,
        "Jobs",
        "Extend a lease",
        "It ends `lease_seconds` from now. With `cancel_requested`, somebody wants the job to stop.",
        _job_success(examples.JOB_EXTENDED, "The job with its lease.", shapes.HeldJobShape),
        _FENCED,
        body=JobExtendBody,
        body_example=examples.JOB_EXTEND_BODY,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/jobs/{id}/release",
        jobs.release_job,
        "Jobs",
        "Give a job back",
        "Counts no failure. Somebody may claim it at once, or after `delay_seconds`.",
        _job_success(examples.JOB_RELEASED, "The job: ready, scheduled, or cancelled where that was asked."),
        _FENCED,
        body=JobReleaseBody,
        body_example=examples.RELEASE_BODY,
        idempotency_key="accepted",
    ),
    _managing(
        "cancel",
        jobs.cancel_job,
        "One that runs is `cancel_requested`, and becomes cancelled when its holder fails or releases it.",
        _job_success(examples.JOB_CANCELLED, "The job: cancelled, or running with `cancel_requested`."),
    ),
    _managing(
        "retry",
        jobs.retry_job,
        "Makes a discarded or cancelled job ready with its failures forgotten, and a scheduled one ready now.",
        _job_success(examples.JOB_RETRIED, "The job, ready; running if it does."),
    ),
    _managing(
        "discard",
        jobs.discard_job,
        "Takes it out for good; one that runs is lost to its holder.",
        _job_success(examples.JOB_DISCARDED, "The job, discarded."),
    ),
)
