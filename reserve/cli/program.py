"""The commands: reads options and settings, calls what does the work, and turns errors into a sentence and exit code.

Imports of the HTTP interface wait for the command that needs it: they take longer than most other commands.
"""

import json
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from reserve.cli.jobs import jobs_app, lanes
from reserve.cli.logs import configure_logs
from reserve.cli.reports import audit_with_progress, print_audit, progress_bar
from reserve.cli.running import run
from reserve.db import embedded
from reserve.db.connection import Database
from reserve.db.migrate import migrate as migrate_namespace
from reserve.db.migrate import migrations
from reserve.errors import InvalidRequest, ReserveError, SettingsError, ValidationFailed
from reserve.inventory.importing import Imported
from reserve.ops.audit import AuditReport
from reserve.ops.demo_buyers import BUYERS_MAX, UNITS_MAX, Options
from reserve.ops.pools_csv import import_pools, read_file
from reserve.settings import Settings, load

_SALE = Options()

app = typer.Typer(
    name="reserve",
    help="Reserve stock on PostgreSQL without ever overselling.",
    epilog=(
        "Settings come from RESERVE_* variables or a .env file. Exit codes: 0 done; 1 refused or failed, with one "
        "sentence that says why; 2 wrong usage; 128 and the signal's number when interrupted. An unexpected error "
        "shows its stack with RESERVE_DEBUG=1."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
pools_app = typer.Typer(help="Pools, many at once.", no_args_is_help=True)
app.add_typer(pools_app, name="pools")
app.add_typer(jobs_app, name="jobs")
app.command("lanes")(lanes)


def main() -> None:
    """Run the command line; never returns."""
    try:
        app()
    except ReserveError as error:
        _fail(str(error))
    except Exception as error:  # noqa: BLE001 -- the last place that can make a sentence of it
        if _shows_stack():
            traceback.print_exc()
        _fail(f"Unexpected {type(error).__name__}: {error}. RESERVE_DEBUG=1 shows where.")


def _fail(sentence: str) -> None:
    typer.echo(f"reserve: {sentence}", err=True)
    sys.exit(1)


def _shows_stack() -> bool:
    try:
        return load().debug
    except SettingsError:
        return False


def _settings(*, log_level_least: str | None = None, **given: Any) -> Settings:
    """The settings, with the options that were given; logging is set up by them."""
    settings = load(**{name: value for name, value in given.items() if value is not None})
    configure_logs(settings, least=log_level_least)
    return settings


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reserve {version('reserve')}")
        raise typer.Exit


@app.callback()
def reserve(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def dev(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = None,
    host: Annotated[str | None, typer.Option(help="Loopback address to listen on.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where the embedded PostgreSQL keeps its data.")] = None,
) -> None:
    """Run everything on this machine: embedded PostgreSQL, migrations, sample pools, API, sweeps; until Ctrl-C."""
    from reserve.cli.dev import dev as serve_dev  # noqa: PLC0415 -- see the head of this module
    from reserve.cli.listening import listening  # noqa: PLC0415

    settings = _settings(port=port, host=host, data_dir=data_dir)
    with (
        listening(settings.host, settings.port, port_option="--port") as listener,
        embedded.start(settings.data_dir) as server,
    ):
        served = settings.model_copy(update={"database_url": load(database_url=server.url).database_url})
        code = run(serve_dev(served, server, listener))
    typer.echo("Stopped.")
    raise typer.Exit(code)


@app.command()
def demo(
    buyers: Annotated[int, typer.Option(min=1, max=BUYERS_MAX, help="Who comes to the sale.")] = _SALE.buyers,
    units: Annotated[int, typer.Option(min=1, max=UNITS_MAX, help="What there is to sell.")] = _SALE.units,
    seed: Annotated[int, typer.Option(help="Decides what each buyer does.")] = _SALE.seed,
) -> None:
    """Hold a flash sale over real HTTP on a temporary server, then audit it.

    Exit code 0 only when nothing was oversold, lost or expired early.
    """
    from reserve.cli.listening import listening  # noqa: PLC0415 -- see the head of this module
    from reserve.cli.sale import hold_sale  # noqa: PLC0415

    settings = _settings(log_level_least="warning")
    typer.echo("Starting a temporary PostgreSQL …", err=True)
    with listening("127.0.0.1", 0, port_option="--port") as listener, embedded.temporary() as server:
        served = settings.model_copy(update={"database_url": load(database_url=server.url).database_url})
        code = run(hold_sale(served, server, listener, Options(buyers=buyers, units=units, seed=seed)))
    raise typer.Exit(code)


@app.command()
def serve() -> None:
    """Serve the API and run its sweeps on the database of RESERVE_DATABASE_URL, on loopback only."""
    from reserve.cli.listening import listening  # noqa: PLC0415 -- see the head of this module
    from reserve.cli.production import serve as serve_database  # noqa: PLC0415

    settings = _settings()
    settings.require_database_url()
    with listening(settings.host, settings.port, port_option="RESERVE_PORT") as listener:
        code = run(serve_database(settings, listener))
    raise typer.Exit(code)


@app.command()
def work(
    registry: Annotated[
        str, typer.Argument(metavar="MODULE:REGISTRY", help="Where the handlers are, for instance shop.jobs:jobs.")
    ],
    lanes: Annotated[str, typer.Option(help="Lanes to work on, with commas between them.")] = "default",
    concurrency: Annotated[int, typer.Option(min=1, help="Jobs that run at once.")] = 10,
) -> None:
    """Run the jobs of some lanes with the handlers of a registry, until a signal comes.

    The first signal lets running jobs finish within RESERVE_WORK_GRACE_SECONDS; a second one gives them back at once.
    """
    from reserve.cli.work import load_registry, parse_lanes  # noqa: PLC0415 -- see the head of this module
    from reserve.cli.work import work as work_on  # noqa: PLC0415

    settings = _settings()
    settings.require_database_url()
    names = parse_lanes(lanes)
    raise typer.Exit(work_on(settings, load_registry(registry), names, concurrency))


@app.command()
def migrate() -> None:
    """Bring the namespace of RESERVE_DATABASE_URL up to date; safe to run from many processes at once."""
    settings = _settings()
    applied = run(migrate_namespace(settings.require_database_url(), settings.namespace))
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"The namespace {settings.namespace!r} is up to date ({len(migrations())} migrations).")


@app.command()
def audit() -> None:
    """Recompute every quantity from the movements, look through the jobs, and name each difference.

    Exit code 0 only when there is none.
    """
    settings = _settings()

    async def work() -> AuditReport:
        async with Database.open(settings) as database:
            return await audit_with_progress(database)

    report = run(work())
    print_audit(report)
    raise typer.Exit(0 if report.clean else 1)


@pools_app.command("import")
def pools_import(
    file: Annotated[Path, typer.Argument(help="CSV with the columns pool,on_hand[,buffer]; - is standard input.")],
) -> None:
    """Create pools from a CSV file, all or none; a wrong row is named by its line and then nothing is changed.

    Importing a file again changes nothing. A pool that exists must have the same on_hand; its buffer is set.
    """
    settings = _settings()

    async def work() -> Imported:
        async with Database.open(settings) as database:
            with progress_bar() as show:
                return await import_pools(database, text, lambda done, total: show("pools", done, total))

    try:
        text = read_file(file, rows_max=settings.import_rows_max)
        done = run(work())
    except (InvalidRequest, ValidationFailed) as error:
        raise InvalidRequest(f"{file}: {str(error).rstrip('.')}. Nothing was imported.") from error
    typer.echo(f"{done.created} created, {done.changed} changed, {done.unchanged} unchanged.")


@app.command()
def openapi() -> None:
    """Print the OpenAPI document of the HTTP interface."""
    from reserve.web.openapi import openapi_document  # noqa: PLC0415 -- see the head of this module

    typer.echo(json.dumps(openapi_document(), indent=2, ensure_ascii=False))
