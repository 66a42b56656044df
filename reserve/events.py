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
    IDEMPOTENCY_KEYS_PRUNED = "idempotency_keys.pruned"
