"""What the job benchmark prints: the figures, the ratios, who was left out. Decides nothing."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from loadtest.jobs_figures import Figure, Findings, Ratio


def print_findings(console: Console, findings: Findings, *, quick: bool) -> None:
    """Everything, to a reader who was not there."""
    title = "Jobs: a quick look, not a measurement" if quick else "Jobs"
    environment = ", ".join(f"{name} {value}" for name, value in findings.environment.items())
    console.print(environment, markup=False, highlight=False)
    console.print(_figures(findings.figures, title))
    if findings.ratios:
        console.print(_ratios(findings.ratios))
    for name, reason in findings.left_out.items():
        console.print(f"[yellow]left out:[/] {escape(name)}: {escape(reason)}", highlight=False, soft_wrap=True)
    for check in findings.checks:
        console.print(f"[green]checked:[/] {escape(check)}", highlight=False, soft_wrap=True)


def _figures(figures: list[Figure], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("part", "who", "what"):
        table.add_column(name, overflow="fold")
    for name in ("jobs", "jobs/s", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("settings and spread", overflow="fold", style="dim")
    last = None
    for figure in figures:
        if last is not None and last != figure.part:
            table.add_section()
        last = figure.part
        rate = "" if figure.jobs_per_second is None else f"{figure.jobs_per_second:,.0f}"
        both = figure.latencies
        p50, p99 = ("", "") if both is None else (f"{both.p50_ms:.2f}", f"{both.p99_ms:.2f}")
        words = map(escape, (figure.part, figure.contestant, figure.what))
        table.add_row(*words, f"{figure.jobs:,}", rate, p50, p99, escape(figure.note))
    return table


def _ratios(ratios: list[Ratio]) -> Table:
    table = Table(title="Ratios", title_justify="left")
    table.add_column("part")
    table.add_column("ours ÷ another", overflow="fold")
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("target", justify="right", no_wrap=True)
    table.add_column("reached", no_wrap=True)
    for ratio in ratios:
        reached = {None: "", True: "[green]yes[/]", False: "[red]no[/]"}[ratio.reached]
        table.add_row(escape(ratio.part), escape(ratio.what), f"{ratio.figure:.3f}", _target(ratio), reached)
    return table


def _target(ratio: Ratio) -> str:
    if ratio.at_least is not None:
        return f"≥ {ratio.at_least:g}"
    return "" if ratio.at_most is None else f"≤ {ratio.at_most:g}"
