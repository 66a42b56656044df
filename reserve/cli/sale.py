"""`reserve demo`: the flash sale of `ops.demo` against a service on a temporary server, and then the audit."""

from rich.console import Console
from rich.table import Table

from reserve.cli.listening import Listener
from reserve.cli.reports import audit_with_progress, print_audit
from reserve.cli.running import first_of, stop_signals
from reserve.cli.serving import serving
from reserve.db.connection import Database
from reserve.db.embedded import EmbeddedServer
from reserve.db.migrate import migrate
from reserve.ops import demo
from reserve.settings import Settings


async def hold_sale(settings: Settings, server: EmbeddedServer, listener: Listener, options: demo.Options) -> int:
    """Hold the sale and audit what it left; the exit code, 0 if nothing was oversold, lost or expired early."""
    console = Console()
    await migrate(settings.require_database_url(), settings.namespace)
    async with Database.open(settings) as database:
        with stop_signals() as stop:
            async with serving(database, listener, stop):
                sale = demo.run(listener.url, options, console)
                result = await first_of(sale, stop.wait(), server.watch())
            if result is None:
                return 128 + stop.signal
            report = await audit_with_progress(database)
    console.print(f"{result.buyers:,} buyers, {result.units:,} units, {result.seconds:.1f} s", highlight=False)
    console.print(_table(result))
    print_audit(report)
    for fault in result.faults:
        console.print(fault, markup=False, highlight=False, soft_wrap=True)
    clean = result.clean and report.clean
    console.print(
        f"[green]Nothing was oversold, lost or expired early: {result.confirmed} of {result.units} units are sold.[/]"
        if clean
        else "[red]The sale went wrong: see above.[/]",
        highlight=False,
        soft_wrap=True,
    )
    return 0 if clean else 1


def _table(result: demo.Result) -> Table:
    table = Table()
    table.add_column("carts")
    table.add_column("number", justify="right")
    for name in ("placed", "confirmed", "released", "expired", "insufficient", "contended", "replayed"):
        table.add_row(name, f"{getattr(result, name):,}")
    return table
