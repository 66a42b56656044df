"""What a replay prints: odd rows, the table, the faults. Decides nothing."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loadtest.ledger import Believed, Count, Ledger
from loadtest.odd import Odd, OddRow
from loadtest.orders import Orders


def print_odd_rows(console: Console, odd: Sequence[OddRow], rows_max: int) -> None:
    """Each odd row by file and line, at most `rows_max` of them; how many were not printed is said."""
    for row in odd[:rows_max]:
        kept = "left out" if row.reason.refused else "used"
        rows = f", {row.rows} rows" if row.rows > 1 else ""
        console.print(f"{row} — {kept}{rows}", markup=False, highlight=False, soft_wrap=True)
    if len(odd) > rows_max:
        console.print(f"… and {len(odd) - rows_max} odd rows more (--odd-rows prints up to that many)", markup=False)


def print_table(
    console: Console, orders: Orders, odd: Sequence[OddRow], ledger: Ledger, seconds: float, *, finished: bool
) -> None:
    """The figures of the run, whether it came to its end or not."""
    title = "Replay" if finished else "Replay, stopped before its end"
    table = Table("", "", title=title, show_header=False, title_justify="left")
    table.columns[1].justify = "right"
    _section(table, "carts read", len(orders.carts), {f"  {name}": ledger.counts[name] for name in Count})
    in_carts = sum(len(cart.lines) for cart in orders.carts)
    in_cancellations = sum(len(cancellation.lines) for cancellation in orders.cancellations)
    refused = sum(row.rows for row in odd if row.reason.refused)
    _section(
        table,
        "lines read",
        orders.rows,
        {
            f"  in {len(orders.carts)} carts": in_carts,
            "    in carts that were placed": ledger.lines["placed"],
            "    in carts that were refused": ledger.lines["refused"],
            f"  in {len(orders.cancellations)} cancellations": in_cancellations,
            "  left out as odd": refused,
        },
    )
    reasons: Counter[Odd] = Counter()
    for row in odd:
        reasons[row.reason] += row.rows
    by_reason = {
        f"  {reason}{'' if reason.refused else ' (used)'}": reasons[reason] for reason in Odd if reasons[reason]
    }
    _section(table, "odd rows", sum(reasons.values()), by_reason)
    names = {f"  {state}": ledger.units[state] for state in Believed if state is not Believed.HELD}
    _section(table, "units held", ledger.units["held"], names | {"  returned": ledger.units["returned"]})
    _section(table, "pools", len(ledger.stock), {"  units at the start": sum(s.initial for s in ledger.stock.values())})
    table.add_row("wall time of the clients", f"{seconds:.1f} s")
    console.print(table)


def _section(table: Table, head: str, figure: int, rows: dict[str, int]) -> None:
    table.add_row(f"[bold]{escape(head)}[/]", f"[bold]{figure:,}[/]")
    for name, value in rows.items():
        table.add_row(escape(name), f"{value:,}")
    table.add_section()


def print_faults(console: Console, ledger: Ledger) -> None:
    for sentence in ledger.faults:
        console.print(f"[red]fault:[/] {escape(sentence)}", highlight=False, soft_wrap=True)
    if ledger.faults_count > len(ledger.faults):
        console.print(f"… and {ledger.faults_count - len(ledger.faults)} faults more", markup=False)
