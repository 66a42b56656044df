"""What a job, a verdict or a lane may say: bounds and spellings, before anything is asked of the database; pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reserve.errors import Fault, ValidationFailed
from reserve.jobs.rows import PRIORITY_MAX, Complete, Enqueue, Extend, Fail, Json, Release, Verdict
from reserve.json_text import as_json_text
from reserve.names import normalise_key
from reserve.settings import Settings
from reserve.unset import Unset

#: The bounds of the columns, and of the API: no setting may go beyond them.
ATTEMPTS_MAX = 100
LEASE_SECONDS_MAX = 86_400
WORKER_LENGTH_MAX = 200

_BIGINT_MAX = 2**63 - 1

#: By how much this machine's clock and the database's may differ before a bound in the far future is read wrongly.
_CLOCKS_APART = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Wish:
    """An `Enqueue` as it is written: names normalised, the payload as text."""

    lane: str
    kind: str
    payload: str
    rank: int
    run_at: datetime | None
    delay_seconds: float
    max_attempts: int | None


def check_enqueues(jobs: Sequence[Enqueue], settings: Settings) -> list[Wish]:
    """Every job as it is written; `ValidationFailed` names all faults, with the job's number when there are several."""
    faults: list[Fault] = []
    wishes = []
    for number, job in enumerate(jobs):
        at = f"/{number}" if len(jobs) > 1 else ""
        wish, wrong = _check_enqueue(job, settings)
        if wrong:
            faults += [Fault(at + pointer, sentence) for pointer, sentence in wrong]
        elif wish is not None:
            wishes.append(wish)
    if faults:
        raise ValidationFailed(faults)
    return wishes


def check_name(text: str, pointer: str) -> str:
    """A lane, kind or worker as it is stored; `ValidationFailed`."""
    try:
        return normalise_key(text)
    except ValueError as error:
        raise ValidationFailed([Fault(pointer, str(error))]) from None


def check_whole(value: int, pointer: str, low: int, high: int) -> int:
    """`value`, a whole number from `low` to `high`; `ValidationFailed`."""
    if type(value) is not int or not low <= value <= high:
        raise ValidationFailed([Fault(pointer, f"must be a whole number from {low} to {high}")])
    return value


def check_json(value: Json, pointer: str, settings: Settings) -> str:
    """`value` as the text that is stored; `ValidationFailed`."""
    try:
        return _json_text(value, settings.job_payload_bytes_max)
    except ValueError as error:
        raise ValidationFailed([Fault(pointer, str(error))]) from None


def check_verdict(verdict: Verdict, settings: Settings) -> None:
    """`ValidationFailed` for a delay or an output that is out of bounds, or what can be no job or token."""
    _check_held(verdict)
    match verdict:
        case Complete():
            if verdict.output is not None:
                check_json(verdict.output, "/output", settings)
        case Fail():
            if verdict.retry_in_seconds is not None:
                _check_seconds(verdict.retry_in_seconds, "/retry_in_seconds", settings.job_delay_seconds_max)
        case Release():
            _check_seconds(verdict.delay_seconds, "/delay_seconds", settings.job_delay_seconds_max)


def check_extend(extend: Extend, settings: Settings) -> str | None:
    """The progress as text, None where there is none; `ValidationFailed`."""
    _check_held(extend)
    check_whole(extend.lease_seconds, "/lease_seconds", 1, LEASE_SECONDS_MAX)
    if isinstance(extend.progress, Unset):
        return None
    return check_json(extend.progress, "/progress", settings)


def _check_held(held: Verdict | Extend) -> None:
    # What the database cannot even read would spoil a whole batch.
    if not (0 <= held.job_id <= _BIGINT_MAX and 0 <= held.token <= _BIGINT_MAX):
        check_whole(held.job_id, "/job_id", 0, _BIGINT_MAX)
        check_whole(held.token, "/token", 0, _BIGINT_MAX)


def cut_error(text: str, settings: Settings) -> str:
    """An error as it is kept: whatever it says, it can be stored, and it is never too long."""
    storable = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    length_max = settings.job_error_length_max
    # The end of a stack says more than its middle.
    return (
        storable if len(storable) <= length_max else storable[: length_max // 4] + " … " + storable[-length_max // 2 :]
    )


def _check_enqueue(job: Enqueue, settings: Settings) -> tuple[Wish | None, list[tuple[str, str]]]:
    """The usual job at the cost of a few comparisons; what is wrong with any other."""
    wrong: list[tuple[str, str]] = []
    lane = _named(job.lane, "/lane", wrong)
    kind = _named(job.kind, "/kind", wrong)
    payload = ""
    try:
        payload = _json_text(job.payload, settings.job_payload_bytes_max)
    except ValueError as error:
        wrong.append(("/payload", str(error)))
    wrong += _numbers(job, settings)
    if wrong:
        return None, wrong
    delay = 0.0 if job.delay_seconds is None else float(job.delay_seconds)
    return Wish(lane, kind, payload, -job.priority, job.run_at, delay, job.max_attempts), wrong


def _named(text: str, pointer: str, wrong: list[tuple[str, str]]) -> str:
    # Letters and digits of ASCII are as they are stored; most names are that.
    if text.isascii() and 0 < len(text) <= 200 and text.isprintable() and text[0] != " " and text[-1] != " ":
        return text
    try:
        return normalise_key(text)
    except ValueError as error:
        wrong.append((pointer, str(error)))
        return ""


def _numbers(job: Enqueue, settings: Settings) -> Iterator[tuple[str, str]]:
    if type(job.priority) is not int or not -PRIORITY_MAX <= job.priority <= PRIORITY_MAX:
        yield "/priority", f"must be a whole number from {-PRIORITY_MAX} to {PRIORITY_MAX}"
    if job.max_attempts is not None and (
        type(job.max_attempts) is not int or not 1 <= job.max_attempts <= ATTEMPTS_MAX
    ):
        yield "/max_attempts", f"must be a whole number from 1 to {ATTEMPTS_MAX}"
    delay_max = settings.job_delay_seconds_max
    if job.run_at is not None:
        if job.delay_seconds is not None:
            yield "/run_at", "must not be given together with delay_seconds"
        elif job.run_at.tzinfo is None:
            yield "/run_at", "must have a time zone"
        # By this machine's clock, since it is only a bound; when the job is due is for the database's to say.
        elif job.run_at > datetime.now(UTC) + timedelta(seconds=delay_max):
            yield "/run_at", f"must be at most {delay_max} seconds from now"
    if job.delay_seconds is not None and not _within(job.delay_seconds, delay_max):
        yield "/delay_seconds", f"must be a number of seconds from 0 to {delay_max}"


def _within(seconds: float, seconds_max: float) -> bool:
    return math.isfinite(seconds) and 0 <= seconds <= seconds_max


def _check_seconds(seconds: float, pointer: str, seconds_max: float) -> None:
    if not _within(seconds, seconds_max):
        raise ValidationFailed([Fault(pointer, f"must be a number of seconds from 0 to {seconds_max}")])


def _json_text(value: Json, bytes_max: int) -> str:
    text = as_json_text(value)
    # No character takes more than four bytes; only what might be too large is counted.
    if len(text) * 4 > bytes_max and (size := len(text.encode())) > bytes_max:
        raise ValueError(f"must have at most {bytes_max} bytes as compact JSON, has {size}")
    return text
