"""Every setting with its bound, default and meaning; owns nothing else and reads no database.

Values come from `RESERVE_*` variables or a `.env` file in the working directory. A wrong value is refused at
start in one sentence (`SettingsError`), never later. Each limit of the service is here, with its unit last.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_data_path
from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from reserve.errors import SettingsError

#: The largest quantity of one line, adjustment or pool. Leaves room for sums of a million of them in a bigint.
QUANTITY_MAX = 10**12


def _namespace(name: str) -> str:
    # PostgreSQL cuts identifiers at 63 bytes; "pg_" is reserved for system schemas.
    if not name.isascii() or not name.isidentifier() or name.lower() != name or len(name) > 48:
        raise ValueError("must be 1 to 48 lower-case letters, digits and underscores, not starting with a digit")
    if name.startswith("pg_") or name in {"public", "information_schema"}:
        raise ValueError("must not be a schema of PostgreSQL's own")
    return name


def _data_dir() -> Path:
    # PostgreSQL does not run as root, and the user that it runs as instead cannot enter root's own folders.
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/reserve")
    return user_data_path("reserve")


class Settings(BaseSettings):
    """All settings. Construct with `load()` to get one clear sentence for each mistake."""

    model_config = SettingsConfigDict(env_prefix="RESERVE_", env_file=".env", extra="ignore", frozen=True)

    database_url: SecretStr | None = Field(None, description="PostgreSQL connection string or URL.")
    namespace: Annotated[str, AfterValidator(_namespace)] = Field(
        "reserve", description="PostgreSQL schema that holds all tables of this service."
    )
    host: str = Field("127.0.0.1", description="Address to listen on; loopback only until there are credentials.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    data_dir: Path = Field(
        default_factory=_data_dir,
        description="Where the embedded server keeps its data.",
    )

    connections_max: int = Field(10, ge=2, le=1000, description="Connections to PostgreSQL per process.")
    connection_wait_seconds: float = Field(5, gt=0, le=300, description="Longest wait for a free connection.")
    statement_timeout_seconds: float = Field(10, gt=0, le=3600, description="Longest run of one statement.")
    idle_in_transaction_seconds: float = Field(
        5, gt=0, le=300, description="After this, PostgreSQL ends a transaction whose process has stalled."
    )
    lock_wait_seconds: float = Field(
        2, gt=0, le=60, description="Longest wait for locked stock before the answer is `contended`."
    )
    transaction_retries_max: int = Field(
        5,
        ge=0,
        le=100,
        description="How often a deadlock, a serialization error or a key race is tried again.",
    )

    hold_ttl_seconds: int = Field(900, ge=1, description="Time to live of a hold when nobody says otherwise.")
    hold_lifetime_seconds_max: int = Field(
        86_400, ge=1, le=366 * 86_400, description="Longest life of a hold from placing, extensions included."
    )
    hold_lines_max: int = Field(1000, ge=1, le=10_000, description="Lines of one hold.")
    quantity_max: int = Field(QUANTITY_MAX, ge=1, le=QUANTITY_MAX, description="Largest quantity anywhere.")
    slots_per_pool_max: int = Field(16, ge=1, le=64, description="Slot rows that spread the locks of one pool.")
    slot_capacity_min: int = Field(
        256, ge=1, le=QUANTITY_MAX, description="A pool gets another slot row for each this much on hand."
    )

    idempotency_key_required: bool = Field(
        True, description="Whether placing a hold and adjusting a pool need an `Idempotency-Key`."
    )
    idempotency_key_retention_seconds: int = Field(
        86_400, ge=60, le=366 * 86_400, description="How long an idempotency key is remembered."
    )

    job_lease_seconds: int = Field(60, ge=1, le=86_400, description="Lease of a claimed job where its lane has none.")
    job_attempts_max: int = Field(
        20, ge=1, le=100, description="Failures after which a job is discarded, where its lane has no figure."
    )
    job_rescues_max: int = Field(
        5,
        ge=0,
        le=100,
        description="How often a job whose lease lapsed is given to somebody else before it is discarded.",
    )
    job_backoff_first_seconds: float = Field(
        5,
        ge=0,
        le=86_400,
        description="Pause before a second attempt, doubled for each after; where a lane has no figure.",
    )
    job_backoff_seconds_max: float = Field(
        3600, ge=0, le=31 * 86_400, description="Longest pause between two attempts, where a lane has no figure."
    )
    job_delay_seconds_max: int = Field(
        366 * 86_400, ge=1, le=100 * 366 * 86_400, description="How far in the future a job may be scheduled."
    )
    job_payload_bytes_max: int = Field(
        256 * 2**10, ge=2, le=2**26, description="Largest payload, progress or output of a job, as compact JSON."
    )
    job_error_length_max: int = Field(
        10_000, ge=100, le=1_000_000, description="Characters of a job's error that are kept."
    )
    job_batch_max: int = Field(1000, ge=1, le=10_000, description="Jobs of one enqueue call over HTTP.")
    job_claim_limit_max: int = Field(1000, ge=1, le=10_000, description="Jobs of one claim.")
    job_claim_wait_seconds_max: float = Field(20, ge=0, le=300, description="Longest wait of a claim for a first job.")
    job_claim_waits_max: int = Field(1000, ge=1, le=100_000, description="Claims that may wait at once in one process.")
    job_poll_seconds: float = Field(
        0.2,
        ge=0.005,
        le=60,
        description="Pause between two looks for ready jobs while claims wait for some.",
    )
    job_notify_interval_seconds: float = Field(
        0.02, ge=0, le=60, description="One process notifies of new jobs of a lane at most once in this time."
    )
    job_due_interval_seconds: float = Field(
        1, ge=0.05, le=3600, description="Pause between looks for due scheduled jobs."
    )
    job_rescue_interval_seconds: float = Field(
        5, ge=0.05, le=3600, description="Pause between two looks for jobs whose lease has lapsed."
    )
    job_transaction_seconds_max: float = Field(
        30, gt=0, le=3600, description="Longest stall inside a transaction that finishes a job with its writes."
    )

    work_concurrency_max: int = Field(1000, ge=1, le=10_000, description="Jobs that one worker may run at once.")
    work_prefetch_min: int = Field(
        0, ge=0, le=10_000, description="Jobs that a worker claims ahead of its free hands at least."
    )
    work_prefetch_max: int = Field(
        1000,
        ge=0,
        le=10_000,
        description="Jobs that a worker claims ahead of its free hands at most, while its handlers are quick.",
    )
    work_poll_seconds_min: float = Field(
        0.002, ge=0.0005, le=60, description="A worker's pause after a look that found fewer jobs than it had room for."
    )
    work_poll_seconds_max: float = Field(
        1, ge=0.005, le=3600, description="A worker's longest pause between two looks, while a lane stays empty."
    )
    work_listen: bool = Field(
        True, description="Whether a worker listens for new jobs on a connection of its own, beside polling."
    )
    work_grace_seconds: float = Field(
        30, ge=0, le=86_400, description="How long a worker that was told to stop lets running handlers finish."
    )
    work_cancel_seconds: float = Field(
        5, ge=0, le=3600, description="How long a cancelled handler may take to end before its job is given back."
    )
    work_reconnect_seconds_max: float = Field(
        5, ge=0.05, le=3600, description="A worker's longest pause between two tries while the database is away."
    )
    work_upkeep_batch_size: int = Field(
        500, ge=1, le=10_000, description="Due or lapsed jobs that a worker makes ready in one transaction."
    )

    sweep_interval_seconds: float = Field(1, ge=0.05, le=3600, description="Pause between sweeps of lapsed holds.")
    sweep_batch_size: int = Field(
        500, ge=1, le=10_000, description="Holds, keys or jobs handled by one transaction of a service."
    )
    prune_interval_seconds: float = Field(
        60, ge=0.05, le=86_400, description="Pause between prunings of expired idempotency keys."
    )
    service_pause_seconds_max: float = Field(
        30, ge=0.05, le=3600, description="Longest pause of a service that keeps failing."
    )
    stop_seconds_max: float = Field(
        10, ge=0, le=3600, description="How long a stop waits for running requests, and then for running services."
    )
    audit_statement_seconds: float = Field(
        300, gt=0, le=86_400, description="Longest run of one statement of `reserve audit`."
    )
    import_rows_max: int = Field(100_000, ge=1, le=1_000_000, description="Pools of one `reserve pools import`.")

    body_bytes_max: int = Field(4 * 2**20, ge=1024, le=2**30, description="Largest request body.")
    body_seconds_max: float = Field(10, gt=0, le=300, description="Longest time a request body may take to arrive.")
    metadata_bytes_max: int = Field(16 * 2**10, ge=2, le=2**20, description="Largest `metadata`, as compact JSON.")
    json_depth_max: int = Field(32, ge=2, le=200, description="Deepest nesting of a request body.")
    page_limit_default: int = Field(100, ge=1, le=1000, description="Items of a page when `limit` is absent.")
    page_limit_max: int = Field(1000, ge=1, le=10_000, description="Largest `limit` of a page.")

    log_format: Literal["auto", "console", "keyvalue", "json"] = Field(
        "auto",
        description="Log lines as `console`, `keyvalue` or `json`; `auto` is `console` on a terminal, else `keyvalue`.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least important log lines to write: `debug`, `info`, `warning` or `error`."
    )
    debug: bool = Field(False, description="Whether a command that meets an unexpected error shows its stack.")

    def require_database_url(self) -> str:
        """The database URL; `SettingsError` naming the variable when it is not set."""
        if self.database_url is None or not self.database_url.get_secret_value().strip():
            raise SettingsError(
                "RESERVE_DATABASE_URL is not set: give a PostgreSQL URL, or use `reserve dev` for an embedded server."
            )
        return self.database_url.get_secret_value()


def load(**overrides: object) -> Settings:
    """Settings from the environment and `.env`; `SettingsError` names the variable and what is wrong with it."""
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        # The offending value is not repeated: it may be a secret.
        faults = [f"RESERVE_{str(fault['loc'][0]).upper()}: {fault['msg']}" for fault in error.errors()]
        raise SettingsError("; ".join(faults)) from None
    if settings.hold_ttl_seconds > settings.hold_lifetime_seconds_max:
        raise SettingsError("RESERVE_HOLD_TTL_SECONDS must not exceed RESERVE_HOLD_LIFETIME_SECONDS_MAX")
    if settings.page_limit_default > settings.page_limit_max:
        raise SettingsError("RESERVE_PAGE_LIMIT_DEFAULT must not exceed RESERVE_PAGE_LIMIT_MAX")
    return settings
