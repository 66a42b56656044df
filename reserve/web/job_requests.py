"""What each call on jobs and lanes accepts as its body, and how it reads in the job lane's words."""

from abc import abstractmethod
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema

from reserve.jobs.rows import PRIORITY_MAX, Backoff, Complete, Enqueue, Extend, Fail, LaneChange, Release, Verdict
from reserve.unset import UNSET
from reserve.web.fields import (
    Body,
    JsonValue,
    KeyText,
    Moment,
    NotServed,
    number,
    refusal,
    settings_of,
    whole,
    without_defaults,
)
from reserve.web.headers import IDEMPOTENCY_KEY_LENGTH_MAX

#: Bounds of the tables, which no setting changes.
LEASE_SECONDS_MAX = 86_400
ATTEMPTS_MAX = 100
BACKOFF_SECONDS_MAX = 31 * 86_400
RETENTION_DAYS_MAX = 36_600
_TOKEN_MAX = 2**63 - 1

Priority = Annotated[int, *whole(-PRIORITY_MAX, lambda _: PRIORITY_MAX, schema_high=PRIORITY_MAX)]
Attempts = Annotated[int, *whole(1, lambda _: ATTEMPTS_MAX, schema_high=ATTEMPTS_MAX)]
LeaseSeconds = Annotated[int, *whole(1, lambda _: LEASE_SECONDS_MAX, schema_high=LEASE_SECONDS_MAX)]
RetentionDays = Annotated[int, *whole(1, lambda _: RETENTION_DAYS_MAX, schema_high=RETENTION_DAYS_MAX)]
Token = Annotated[int, *whole(1, lambda _: _TOKEN_MAX, schema_high=_TOKEN_MAX)]
ClaimLimit = Annotated[int, *whole(1, lambda settings: settings.job_claim_limit_max)]
RetryLimit = Annotated[int, *whole(1, lambda settings: settings.job_batch_max)]
DelaySeconds = Annotated[float, *number(lambda settings: settings.job_delay_seconds_max)]
WaitSeconds = Annotated[float, *number(lambda settings: settings.job_claim_wait_seconds_max)]
BackoffSeconds = Annotated[float, *number(lambda _: BACKOFF_SECONDS_MAX)]


def _instead_of(other: str) -> AfterValidator:
    """Of two fields that answer one question, only one may be there: either reading of both would be a guess."""

    def check(value: Any, info: ValidationInfo) -> Any:
        if value is not None and value is not False and info.data.get(other) is not None:
            raise refusal(f"must be left out where there is {other!r}")
        return value

    return AfterValidator(check)


def _item_key(value: str | None, info: ValidationInfo) -> str | None:
    """The key of an item of a batch, in the bounds that the header has."""
    if value is None:
        if settings_of(info).idempotency_key_required:
            raise refusal("is required, so that a retry is safe")
        return None
    if not 1 <= len(value) <= IDEMPOTENCY_KEY_LENGTH_MAX:
        raise refusal(f"must have 1 to {IDEMPOTENCY_KEY_LENGTH_MAX} characters, has {len(value)}")
    if not (value.isascii() and value.isprintable()):
        raise refusal("must be printable ASCII")
    return value


_ITEM_KEY_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_LENGTH_MAX})


class JobBody(Body):
    """Body of `POST /v1/lanes/{lane}/jobs`."""

    kind: KeyText = Field(description="What is to be done, by the name that workers know it by.")
    payload: JsonValue = Field(default_factory=dict, description="What the worker needs to know: any JSON.")
    priority: Priority = Field(0, description="Higher ones are claimed first.")
    run_at: Moment | None = Field(None, description="Not before this time; one that has passed means at once.")
    delay_seconds: Annotated[DelaySeconds | None, _instead_of("run_at")] = Field(
        None, description="Not before so many seconds have passed; instead of `run_at`."
    )
    max_attempts: Attempts | None = Field(None, description="Failures after which it is discarded; else the lane's.")
    unique_key: NotServed = Field(None, description="Not served by this version: null.")
    order_key: NotServed = Field(None, description="Not served by this version: null.")
    pool: NotServed = Field(None, description="Not served by this version: null.")

    def enqueue(self, lane: str) -> Enqueue:
        return Enqueue(
            lane,
            self.kind,
            self.payload,
            priority=self.priority,
            run_at=self.run_at,
            delay_seconds=self.delay_seconds,
            max_attempts=self.max_attempts,
        )


def _key_is_required(schema: dict[str, Any]) -> None:
    schema["required"] = ["idempotency_key", *schema["required"]]
    schema["properties"]["idempotency_key"].pop("default", None)


class JobItemBody(JobBody):
    """One job of `POST /v1/lanes/{lane}/jobs/batch`."""

    model_config = ConfigDict(json_schema_extra=_key_is_required)

    idempotency_key: Annotated[str | None, AfterValidator(_item_key), _ITEM_KEY_SCHEMA] = Field(
        None, validate_default=True, description="The item's own key; a setting makes it optional."
    )


class JobBatchBody(Body):
    """Body of `POST /v1/lanes/{lane}/jobs/batch`."""

    items: list[JobItemBody] = Field(description="The jobs, each judged and answered on its own.", min_length=1)


class ClaimBody(Body):
    """Body of `POST /v1/lanes/{lane}/claims`."""

    worker: KeyText = Field(description="Who claims, for whoever looks at the jobs later.")
    limit: ClaimLimit = Field(1, description="Jobs to claim at most.")
    lease_seconds: LeaseSeconds | None = Field(None, description="How long they are the worker's; else the lane's.")
    wait_seconds: WaitSeconds = Field(0.0, description="How long to wait for a first job.")


class VerdictBody(Body):
    """What a holder says of its job when it is done with it."""

    token: Token = Field(description="The token that the job was claimed with.")

    @abstractmethod
    def verdict(self, job_id: int) -> Verdict:
        """The verdict on the job of the path."""


class JobCompleteBody(VerdictBody):
    """Body of `POST /v1/jobs/{id}/complete`."""

    output: JsonValue = Field(None, description="What came out: any JSON.")

    def verdict(self, job_id: int) -> Verdict:
        return Complete(job_id, self.token, self.output)


class JobFailBody(VerdictBody):
    """Body of `POST /v1/jobs/{id}/fail`."""

    error: str = Field(description="What went wrong, for people; a very long text is cut.")
    retry_in_seconds: DelaySeconds | None = Field(None, description="Pause before the next attempt; else the lane's.")
    discard: Annotated[bool, _instead_of("retry_in_seconds")] = Field(
        default=False, description="Trying again is useless: discard it now."
    )

    def verdict(self, job_id: int) -> Verdict:
        return Fail(job_id, self.token, self.error, self.retry_in_seconds, self.discard)


class JobReleaseBody(VerdictBody):
    """Body of `POST /v1/jobs/{id}/release`."""

    delay_seconds: DelaySeconds = Field(0.0, description="Seconds until somebody may claim it again.")

    def verdict(self, job_id: int) -> Verdict:
        return Release(job_id, self.token, self.delay_seconds)


class JobExtendBody(Body):
    """Body of `POST /v1/jobs/{id}/extend`."""

    token: Token = Field(description="The token that the job was claimed with.")
    lease_seconds: LeaseSeconds = Field(description="Seconds from now.")
    progress: JsonValue = Field(None, description="How far it is: any JSON; when absent, the last stays.")

    def extend(self, job_id: int) -> Extend:
        progress = self.progress if "progress" in self.model_fields_set else UNSET
        return Extend(job_id, self.token, self.lease_seconds, progress)


class RetryDiscardedBody(Body):
    """Body of `POST /v1/lanes/{lane}/retry-discarded`."""

    kind: KeyText | None = Field(None, description="Only jobs of this kind.")
    limit: RetryLimit = Field(description="Jobs to retry at most.")


class BackoffBody(Body):
    """Pauses between attempts, doubled for each failure, with jitter."""

    first_seconds: BackoffSeconds = Field(description="The pause after a first failure.")
    seconds_max: BackoffSeconds = Field(description="The longest pause.")


def _growing(value: BackoffBody | None) -> BackoffBody | None:
    if value is not None and value.first_seconds > value.seconds_max:
        raise refusal("must have a seconds_max that is at least its first_seconds")
    return value


class LaneBody(Body):
    """Body of `PUT /v1/lanes/{lane}`: what is absent keeps its value, null goes back to the service's setting."""

    model_config = ConfigDict(json_schema_extra=without_defaults)

    paused: bool = Field(default=False, description="Whether nothing is claimed from it.")
    lease_seconds: LeaseSeconds | None = Field(None, description="Lease of a claim that names none.")
    max_attempts: Attempts | None = Field(None, description="Failures after which a job is discarded.")
    max_running: NotServed = Field(None, description="Not served by this version: null.")
    backoff: Annotated[BackoffBody | None, AfterValidator(_growing)] = Field(
        None, description="Pauses between attempts."
    )
    retention_days: RetentionDays | None = Field(None, description="How long finished jobs are kept.")

    def change(self) -> LaneChange:
        """The fields that were sent, in the job lane's words."""
        sent = self.model_fields_set
        backoff = None if self.backoff is None else Backoff(self.backoff.first_seconds, self.backoff.seconds_max)
        return LaneChange(
            paused=self.paused if "paused" in sent else UNSET,
            lease_seconds=self.lease_seconds if "lease_seconds" in sent else UNSET,
            max_attempts=self.max_attempts if "max_attempts" in sent else UNSET,
            max_running=self.max_running if "max_running" in sent else UNSET,
            backoff=backoff if "backoff" in sent else UNSET,
            retention_days=self.retention_days if "retention_days" in sent else UNSET,
        )
