"""The calls on lanes, and those that enqueue and claim in one, as they are routed and documented."""

from typing import Final

from reserve import errors
from reserve.web import claims, job_batch, jobs, lanes
from reserve.web import job_examples as examples
from reserve.web import job_shapes as shapes
from reserve.web.call import BODY, BUSY, LATER, PAGE, READ, Call, Success
from reserve.web.job_requests import ClaimBody, JobBatchBody, JobBody, LaneBody, RetryDiscardedBody

LANE_CALLS: Final = (
    Call(
        "PUT",
        "/v1/lanes/{lane}",
        lanes.put_lane,
        "Lanes",
        "Create or change a lane",
        "What is absent keeps its value. A lane also comes to be by its first job. While it is paused, nothing is "
        "claimed from it.",
        (
            Success(201, "The lane was made.", shapes.LaneShape, examples.LANE),
            Success(200, "The lane was changed.", shapes.LaneShape, examples.LANE_IN_USE),
        ),
        (*BODY, *LATER),
        body=LaneBody,
        body_example=examples.LANE_BODY,
    ),
    Call(
        "GET",
        "/v1/lanes/{lane}",
        lanes.get_lane,
        "Lanes",
        "Read a lane",
        "Its settings and its figures.",
        (Success(200, "The lane.", shapes.LaneShape, examples.LANE_IN_USE),),
        (errors.InvalidRequest, errors.LaneNotFound, *BUSY),
    ),
    Call(
        "GET",
        "/v1/lanes",
        lanes.list_lanes,
        "Lanes",
        "List lanes",
        "Ordered by name.",
        (Success(200, "A page of lanes.", shapes.LaneListShape, examples.LANE_LIST),),
        READ,
        query=PAGE,
    ),
    Call(
        "POST",
        "/v1/lanes/{lane}/jobs",
        jobs.enqueue_job,
        "Jobs",
        "Enqueue a job",
        "The lane comes to be by its first job.",
        (Success(201, "The job.", shapes.JobShape, examples.JOB, ("Location", "Idempotent-Replayed")),),
        (errors.IdempotencyKeyMissing, *BODY, errors.IdempotencyKeyReused, *LATER),
        body=JobBody,
        body_example=examples.JOB_BODY,
        idempotency_key="required",
    ),
    Call(
        "POST",
        "/v1/lanes/{lane}/jobs/batch",
        job_batch.enqueue_jobs,
        "Jobs",
        "Enqueue many jobs",
        "Items are independent: each has its own `idempotency_key` and is answered in its place as its own call would "
        "be, a retry included. An `Idempotency-Key` header is refused here.",
        (Success(200, "What became of each.", shapes.JobBatchShape, examples.JOB_BATCH),),
        (*BODY, *LATER),
        body=JobBatchBody,
        body_example=examples.JOB_BATCH_BODY,
    ),
    Call(
        "POST",
        "/v1/lanes/{lane}/claims",
        claims.claim_jobs,
        "Jobs",
        "Claim jobs",
        "Takes ready jobs, by priority, then `run_at`, then `id`, for `lease_seconds`; nobody else gets those. "
        "With `wait_seconds`, waits so long for a first one; a client that goes away gets nothing. With an "
        "`Idempotency-Key`, a retry gets the jobs of a claim whose answer was lost; an empty answer is not kept.",
        (Success(200, "The jobs.", shapes.ClaimShape, examples.CLAIM, ("Idempotent-Replayed",)),),
        (*BODY, errors.IdempotencyKeyReused, *LATER),
        body=ClaimBody,
        body_example=examples.CLAIM_BODY,
        idempotency_key="accepted",
    ),
    Call(
        "POST",
        "/v1/lanes/{lane}/retry-discarded",
        lanes.retry_discarded,
        "Jobs",
        "Retry a lane's discarded jobs",
        "Oldest first; ask again until fewer than `limit` were retried.",
        (Success(200, "How many.", shapes.RetriedShape, examples.RETRIED, ("Idempotent-Replayed",)),),
        (*BODY, errors.IdempotencyKeyReused, errors.LaneNotFound, *LATER),
        body=RetryDiscardedBody,
        body_example=examples.RETRY_DISCARDED_BODY,
        idempotency_key="accepted",
    ),
)
