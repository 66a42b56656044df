"""An example for all that the OpenAPI document shows of jobs and lanes: a shop mails receipts. Plain data."""

from typing import Final

_JOB_ID = 7301
_CURSOR = "WyJqb2JzIiwxLCI3MzAxIl0"

JOB_BODY: Final = {"kind": "send_receipt", "payload": {"order": 2041}, "priority": 5, "delay_seconds": 0}
JOB: Final = {
    "id": _JOB_ID,
    "lane": "mail",
    "kind": "send_receipt",
    "payload": {"order": 2041},
    "state": "ready",
    "priority": 5,
    "attempt": 0,
    "max_attempts": 20,
    "failures": 0,
    "rescues": 0,
    "run_at": "2026-01-05T10:00:00.000000Z",
    "unique_key": None,
    "order_key": None,
    "pool": None,
    "output": None,
    "error": None,
    "progress": None,
    "cancel_requested": False,
    "created_at": "2026-01-05T10:00:00.000000Z",
    "started_at": None,
    "finished_at": None,
}
JOB_LIST: Final = {"items": [JOB], "next_cursor": _CURSOR}

JOB_BATCH_BODY: Final = {
    "items": [
        {"idempotency_key": "receipt-2041", "kind": "send_receipt", "payload": {"order": 2041}, "priority": 5},
        {"idempotency_key": "receipt-2042", "kind": "send_receipt", "payload": {"order": 2042}},
    ]
}
JOB_BATCH: Final = {
    "items": [
        {"status": 201, "job": JOB},
        {
            "status": 422,
            "problem": {
                "type": "/problems/validation-failed",
                "title": "The request has faults",
                "status": 422,
                "detail": "/items/1/priority must be a whole number from -32767 to 32767.",
                "code": "validation-failed",
                "instance": "/v1/lanes/mail/jobs/batch",
                "errors": [{"pointer": "/items/1/priority", "detail": "must be a whole number from -32767 to 32767"}],
            },
        },
    ]
}

CLAIM_BODY: Final = {"worker": "mailer-1", "limit": 10, "lease_seconds": 60, "wait_seconds": 20}
CLAIM: Final = {
    "jobs": [
        {
            "id": _JOB_ID,
            "token": 1,
            "lane": "mail",
            "kind": "send_receipt",
            "payload": {"order": 2041},
            "priority": 5,
            "attempt": 1,
            "max_attempts": 20,
            "failures": 0,
            "rescues": 0,
            "created_at": "2026-01-05T10:00:00.000000Z",
            "lease_expires_at": "2026-01-05T10:01:00.250000Z",
            "idempotency_key": "reserve-7301",
        }
    ]
}

_STARTED = {"attempt": 1, "started_at": "2026-01-05T10:00:00.250000Z"}
COMPLETE_BODY: Final = {"token": 1, "output": {"message": "a1f0"}}
JOB_SUCCEEDED: Final = (
    JOB | _STARTED | {"state": "succeeded", "output": {"message": "a1f0"}, "finished_at": "2026-01-05T10:00:01.500000Z"}
)
FAIL_BODY: Final = {"token": 1, "error": "The mail server does not answer.", "retry_in_seconds": 30}
JOB_FAILED: Final = (
    JOB
    | _STARTED
    | {
        "state": "scheduled",
        "failures": 1,
        "error": "The mail server does not answer.",
        "run_at": "2026-01-05T10:00:31.500000Z",
    }
)
JOB_EXTEND_BODY: Final = {"token": 1, "lease_seconds": 120, "progress": {"sent": 3, "of": 10}}
JOB_EXTENDED: Final = (
    JOB
    | _STARTED
    | {
        "state": "running",
        "progress": {"sent": 3, "of": 10},
        "token": 1,
        "lease_expires_at": "2026-01-05T10:02:30.000000Z",
    }
)
RELEASE_BODY: Final = {"token": 1, "delay_seconds": 60}
JOB_RELEASED: Final = JOB | _STARTED | {"state": "scheduled", "run_at": "2026-01-05T10:01:01.500000Z"}
JOB_CANCELLED: Final = JOB | {"state": "cancelled", "finished_at": "2026-01-05T10:00:05.000000Z"}
JOB_RETRIED: Final = JOB | {"attempt": 20, "run_at": "2026-01-05T11:00:00.000000Z"}
JOB_DISCARDED: Final = JOB | {"state": "discarded", "finished_at": "2026-01-05T10:00:05.000000Z"}

RETRY_DISCARDED_BODY: Final = {"kind": "send_receipt", "limit": 100}
RETRIED: Final = {"retried": 12}

LANE_BODY: Final = {
    "paused": False,
    "lease_seconds": 120,
    "max_attempts": 10,
    "backoff": {"first_seconds": 10, "seconds_max": 600},
}
LANE: Final = {
    "name": "mail",
    "paused": False,
    "lease_seconds": 120,
    "max_attempts": 10,
    "max_running": None,
    "backoff": {"first_seconds": 10.0, "seconds_max": 600.0},
    "retention_days": None,
    "ready": 0,
    "scheduled": 0,
    "running": 0,
    "discarded": 0,
    "oldest_ready_age_seconds": None,
}
LANE_IN_USE: Final = LANE | {"ready": 41, "scheduled": 3, "running": 10, "oldest_ready_age_seconds": 1.25}
LANE_LIST: Final = {"items": [LANE_IN_USE], "next_cursor": None}
