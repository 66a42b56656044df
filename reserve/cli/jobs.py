"""`reserve jobs` and `reserve lanes`: what waits, runs and has failed, as a table or as JSON. Owns no rule of a job.

The JSON is that of the HTTP interface, and its imports wait for the command; see `program`.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reserve.cli.logs import configure_logs
from reserve.cli.running import run
from reserve.db.connection import Database
from reserve.errors import JobFinished, JobNotFound
from reserve.jobs import lanes as lane_settings
from reserve.jobs import managing
from reserve.jobs.rows import COUNT_MAX, Job, JobFilter, JobState, Lane
from reserve.settings import Settings, load

T = TypeVar("T")

#: The largest `bigint`.
_ID_MAX = 2**63 - 1
#: Jobs of one transaction of `reserve jobs retry --lane`.
_RETRY_BATCH = 1000
#: Characters of an error in a table; `show` has all of it.
_ERROR_LENGTH_MAX = 60

jobs_app = typer.Typer(help="Jobs: list, look at one, retry, cancel, discard.", no_args_is_help=True)

_Ids = Annotated[list[int], typer.Argument(min=1, max=_ID_MAX, metavar="ID…", help="Ids of jobs.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as the HTTP interface has it.")]


@jobs_app.command("list")
def list_jobs(
    lane: Annotated[str | None, typer.Option(help="Only jobs of this lane.")] = None,
    state: Annotated[JobState | None, typer.Option(help="Only jobs in this state.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    after: Annotated[int | None, typer.Option(min=1, help="Only jobs older than this one.")] = None,
    as_json: _AsJson = False,
) -> None:
    """List jobs, newest first."""
    chosen = JobFilter(lane=lane, state=state, kind=kind)
    page = _run(lambda database: managing.find(database, chosen, after=after, limit=limit))
    if as_json:
        from reserve.web.job_shapes import job_shape  # noqa: PLC0415 -- see the head of this module

        _print_json([job_shape(job) for job in page.items])
        return
    _print_jobs(page.items)
    if page.more:
        typer.echo(f"There are more: --after {page.items[-1].id}", err=True)


@jobs_app.command("show")
def show_job(
    job_id: Annotated[int, typer.Argument(min=1, max=_ID_MAX, metavar="ID", help="Id of a job.")],
    as_json: _AsJson = False,
) -> None:
    """Show everything about one job."""
    from reserve.web.job_shapes import job_shape  # noqa: PLC0415 -- see the head of this module

    job = _run(lambda database: managing.get(database, job_id))
    if as_json:
        _print_json(job_shape(job))
        return
    for name, value in job_shape(job).items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        typer.echo(f"{name:<16} {'-' if value is None else shown}")
    if job.worker is not None:
        typer.echo(f"{'worker':<16} {job.worker}")


@jobs_app.command("retry")
def retry_jobs(
    ids: Annotated[list[int] | None, typer.Argument(min=1, max=_ID_MAX, metavar="ID…", help="Ids of jobs.")] = None,
    lane: Annotated[str | None, typer.Option(help="Instead of ids: all discarded jobs of this lane.")] = None,
    kind: Annotated[str | None, typer.Option(help="With --lane: only jobs of this kind.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="With --lane: how many at most; else all.")] = None,
) -> None:
    """Make jobs ready again: discarded or cancelled ones with their failures forgotten, scheduled ones now."""
    if (lane is None) is (not ids):
        raise typer.BadParameter("give ids of jobs, or --lane for all that it has discarded")
    if lane is None:
        if kind is not None or limit is not None:
            raise typer.BadParameter("--kind and --limit go with --lane only")
        _each(ids or [], managing.retry)
        return
    retried = _run(lambda database: _retry_discarded(database, lane, kind, limit))
    typer.echo(f"{retried} jobs of the lane {lane!r} are ready again.")


@jobs_app.command("cancel")
def cancel_jobs(ids: _Ids) -> None:
    """Cancel jobs; a running one is asked to stop."""
    _each(ids, managing.cancel)


@jobs_app.command("discard")
def discard_jobs(ids: _Ids) -> None:
    """Discard jobs; whoever runs one loses it."""
    _each(ids, managing.discard)


def lanes(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 1000,
    after: Annotated[str | None, typer.Option(help="Only lanes after this name.")] = None,
    as_json: _AsJson = False,
) -> None:
    """List lanes with what waits and runs in each."""
    page = _run(lambda database: lane_settings.find(database, after=after, limit=limit))
    if as_json:
        from reserve.web.job_shapes import lane_shape  # noqa: PLC0415 -- see the head of this module

        _print_json([lane_shape(lane) for lane in page.items])
        return
    _print_lanes(page.items)
    if page.more:
        typer.echo(f"There are more: --after {page.items[-1].name!r}", err=True)


def _run(work: Callable[[Database], Awaitable[T]]) -> T:
    settings = _settings()

    async def opened() -> T:
        async with Database.open(settings) as database:
            return await work(database)

    return run(opened())


def _settings() -> Settings:
    settings = load()
    configure_logs(settings)
    return settings


def _each(ids: Sequence[int], verb: Callable[[Database, int], Awaitable[Job]]) -> None:
    """Do `verb` to each job and say what it is now; what is refused is said too and makes exit code 1."""

    async def work(database: Database) -> int:
        refused = 0
        for job_id in ids:
            try:
                job = await verb(database, job_id)
            except (JobNotFound, JobFinished) as error:
                typer.echo(f"reserve: {error}", err=True)
                refused += 1
            else:
                typer.echo(f"{job.id} {job.state}{', asked to stop' if job.cancel_requested else ''}")
        return refused

    if _run(work):
        raise typer.Exit(1)


async def _retry_discarded(database: Database, lane: str, kind: str | None, limit: int | None) -> int:
    """Retry up to `limit` jobs, in transactions of some each; else as many as were discarded when this began.

    Not until none is left: a worker that discards each at once again would keep this going for ever.
    """
    if limit is None:
        limit = (await lane_settings.get(database, lane)).discarded
    retried = 0
    while retried < limit:
        wanted = min(_RETRY_BATCH, limit - retried)
        some = await managing.retry_discarded(database, lane, kind=kind, limit=wanted)
        retried += some
        if some < wanted:
            break
    return retried


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _print_jobs(jobs: Sequence[Job]) -> None:
    table = Table()
    for name in ("id", "attempt", "failures"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("state", "lane", "kind"):
        table.add_column(name, overflow="fold")
    table.add_column("run at", no_wrap=True)
    table.add_column("error", overflow="fold")
    for job in jobs:
        table.add_row(
            str(job.id),
            str(job.attempt),
            f"{job.failures}/{job.max_attempts}",
            f"{job.state}, asked to stop" if job.cancel_requested else str(job.state),
            # Not strings, in which a client's brackets would be taken for markup.
            Text(job.lane),
            Text(job.kind),
            f"{job.run_at:%Y-%m-%d %H:%M:%S}",
            Text(_short(job.error)),
        )
    Console().print(table)


def _short(error: str | None) -> str:
    line = (error or "").strip().partition("\n")[0]
    return line if len(line) <= _ERROR_LENGTH_MAX else line[: _ERROR_LENGTH_MAX - 1] + "…"


def _print_lanes(found: Sequence[Lane]) -> None:
    table = Table()
    table.add_column("lane", overflow="fold")
    for name in ("ready", "scheduled", "running", "discarded"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("oldest ready", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for lane in found:
        age = lane.oldest_ready_age_seconds
        counts = (lane.ready, lane.scheduled, lane.running, lane.discarded)
        table.add_row(
            Text(lane.name),
            *(f"{count:,}{'+' if count >= COUNT_MAX else ''}" for count in counts),
            "" if age is None else f"{age:,.1f} s",
            "paused" if lane.paused else "",
        )
    Console().print(table)
