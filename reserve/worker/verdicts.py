"""From the way a handler ended to the verdict on its job; pure."""

import asyncio
import traceback
from pathlib import Path

from reserve.errors import ValidationFailed
from reserve.jobs import rows
from reserve.jobs.checking import check_verdict, cut_error
from reserve.settings import Settings
from reserve.worker.endings import Discard, Release, Retry
from reserve.worker.holding import Held
from reserve.worker.payloads import Misfit

_OURS = str(Path(__file__).parent)


class TimedOut(Exception):
    """An attempt took longer than its handler may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Timed out after {seconds:g} s.")


class UnknownKind(Exception):
    """No handler of this worker knows the job's kind.

    A failure like any other: during a deploy another worker may know it, and one that nobody knows ends discarded.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(f"This worker has no handler for jobs of kind {kind!r}.")


def of_output(held: Held, output: object, settings: Settings) -> rows.Verdict:
    """Of a handler that returned. What cannot be stored will not be the second time, either: the job is discarded."""
    if output is None:
        return rows.Complete(held.id, held.token)
    return _checked(rows.Complete(held.id, held.token, output), settings)  # type: ignore[arg-type]  # this checks it


def of_error(held: Held, error: BaseException, settings: Settings) -> rows.Verdict:
    """Of a handler that raised."""
    match error:
        case Misfit():
            return rows.Fail(held.id, held.token, cut_error(str(error), settings), discard=True)
        case Discard():
            return rows.Fail(held.id, held.token, cut_error(str(error.reason), settings), discard=True)
        case Retry():
            reason = cut_error(str(error.reason), settings)
            return _checked(rows.Fail(held.id, held.token, reason, error.in_seconds), settings)
        case Release():
            return _checked(rows.Release(held.id, held.token, error.delay_seconds), settings)
        case TimedOut() | UnknownKind():
            return rows.Fail(held.id, held.token, str(error))
        case asyncio.CancelledError() if held.reason is not None:
            # Nobody's failure. If the job itself was cancelled, giving it back makes it so.
            return rows.Release(held.id, held.token)
        case _:
            return rows.Fail(held.id, held.token, cut_error(describe(error), settings))


def of_refusal(verdict: rows.Verdict, error: Exception, settings: Settings) -> rows.Verdict:
    """In place of a verdict that cannot be stored: a failure that says so, which can."""
    sentence = cut_error(f"The handler's answer cannot be stored: {error}", settings)
    return rows.Fail(verdict.job_id, verdict.token, sentence, discard=isinstance(verdict, rows.Complete))


def describe(error: BaseException) -> str:
    """What happened in one line, then where, without the frames of this worker."""
    here = error.__traceback__
    while here is not None and here.tb_frame.f_code.co_filename.startswith(_OURS):
        here = here.tb_next
    try:
        stack = "".join(traceback.format_exception(type(error), error, here))
        return f"{summarise(error)}\n\n{stack}"
    except Exception:  # noqa: BLE001 -- whatever an exception does when it is asked what it is
        return summarise(error)


def summarise(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 -- as above
        text = "(it cannot say what)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _checked(verdict: rows.Verdict, settings: Settings) -> rows.Verdict:
    try:
        check_verdict(verdict, settings)
    except ValidationFailed as error:
        return of_refusal(verdict, error, settings)
    return verdict
