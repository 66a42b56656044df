"""What commands show while they work and at their end. Progress goes to standard error, and only to a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reserve.db.connection import Database
from reserve.ops import audit
from reserve.ops.audit import AuditReport


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """Shows how much of what is done, of a total where it is known; gone at the end."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = {}

        def show(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield show


async def audit_with_progress(database: Database) -> AuditReport:
    """Audit the database, showing how far it is."""
    with progress_bar() as show:
        return await audit.audit(database, lambda step: show(step.what, step.done, step.total))


def print_audit(report: AuditReport) -> None:
    """What was looked at, and each difference on a line of its own."""
    typer.echo(
        f"Audited {report.pools} pools ({report.slots} slots), {report.holds} holds ({report.lines} lines), "
        f"{report.movements} movements and {report.jobs} jobs: {_differences(report.count)}."
    )
    for difference in report.differences:
        typer.echo(difference.sentence)
    if (hidden := report.count - len(report.differences)) > 0:
        typer.echo(f"… and {hidden} more, not shown.")


def _differences(count: int) -> str:
    return {0: "no difference", 1: "1 difference"}.get(count, f"{count} differences")
