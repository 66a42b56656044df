"""The closed set of things that are logged, one line each. Names only; who logs them decides the fields."""

from enum import StrEnum


class Event(StrEnum):
    SERVE_STARTED = "serve.started"
    SERVE_STOPPING = "serve.stopping"
    SERVE_STOPPED = "serve.stopped"
    REQUEST_REFUSED = "request.refused"
    REQUEST_FAILED = "request.failed"
    SERVICE_STARTED = "service.started"
    SERVICE_STOPPED = "service.stopped"
    SERVICE_FAILED = "service.failed"
    SERVICE_RECOVERED = "service.recovered"
    HOLDS_EXPIRED = "holds.expired"
    JOBS_MADE_READY = "jobs.made_ready"
    JOBS_RESCUED = "jobs.rescued"
    IDEMPOTENCY_KEYS_PRUNED = "idempotency_keys.pruned"
    # The worker's.
    WORK_STARTED = "work.started"
    WORK_STOPPING = "work.stopping"
    WORK_STOPPED = "work.stopped"
    WORK_PART_FAILED = "work.part_failed"
    WORK_PART_RECOVERED = "work.part_recovered"
    WORK_DATABASE_AWAY = "work.database_away"
    WORK_DATABASE_BACK = "work.database_back"
    JOB_FAILED = "job.failed"
    JOB_DISCARDED = "job.discarded"
    JOB_LEASE_LOST = "job.lease_lost"
    JOB_VERDICT_REFUSED = "job.verdict_refused"
