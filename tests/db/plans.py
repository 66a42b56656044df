"""Plans of prepared statements, as the service's sessions get them, and tables large enough to tell good from bad."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from psycopg import AsyncConnection, sql

from tests.steps import fetch

_PARAMETER = re.compile(r"%\((\w+)\)s")

#: Slots of each pool, the most that a pool has.
SLOTS_PER_POOL = 16

_DROPPED = """
select format('alter table %%s drop constraint %%I cascade', conrelid::regclass, conname),
  case when contype in ('p', 'u')
    then format('alter table %%s add constraint %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid)) end
from pg_constraint where conrelid = %s::regclass and contype in ('c', 'f', 'p', 'u')
union all
select format('drop index %%s', indexrelid::regclass), pg_get_indexdef(indexrelid)
from pg_index where indrelid = %s::regclass
  and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u'))
"""

#: Lanes among which the jobs are.
LANES = 10

#: A tenth is held, and a hundredth of that has lapsed; each expires a little after the one before.
_FILL = {
    "slot": """
        insert into {0}.slot (id, pool_id, number, capacity) overriding system value
        select {2} * (pool - 1) + number, pool, number, 100
        from generate_series(1, {1} / {2}) pool, generate_series(1, {2}) number
    """,
    "hold": """
        insert into {0}.hold (id, state, created_at, expires_at, finalized_at)
        select lpad(to_hex(n), 32, '0')::uuid, case when n %% 10 = 0 then 'held' else 'released' end,
          now() - interval '10 hours', now() + (n - {1} / 100) * interval '1 hour' / {1},
          case when n %% 10 <> 0 then now() - interval '9 hours' end
        from generate_series(1, {1}) n
    """,
    # A hundredth runs, and a tenth of that has lapsed.
    "job": """
        insert into {0}.job (
          id, lane_id, kind, payload, rank, run_at, state, token, max_attempts, created_at, started_at,
          lease_expires_at, worker
        ) overriding system value
        select n, 1 + n %% {3}, 'k', '{{}}', 0, now() + (n - {1}) * interval '1 hour' / {1},
          case when n <= {1} / 100 then 'running' else 'ready' end, 1, 9, now() - interval '2 hours',
          now() - interval '1 hour', case when n <= {1} / 100 then now() + (n - {1} / 1000) * interval '1 s' end, 'w'
        from generate_series(1, {1}) n
    """,
    "job_scheduled": """
        insert into {0}.job_scheduled (id, lane_id, kind, payload, rank, run_at, max_attempts, created_at)
        select {1} + n, 1 + n %% {3}, 'k', '{{}}', 0, now() + (n - {1} / 100) * interval '1 hour' / {1}, 9,
          now() - interval '2 hours'
        from generate_series(1, {1}) n
    """,
}

#: Of a partitioned table the indexes cannot be left off; so it gets its rows with them.
_FINISHED = """
insert into {0}.job_finished (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues, created_at,
  finished_at
)
select 2 * {1} + n, 1 + n %% {3}, 'k', '{{}}', 0, now(), case when n %% 100 = 0 then 'discarded' else 'succeeded' end,
  1, 1, 9, 0, 0, now() - interval '2 hours', now() - n * interval '1 hour' / {1}
from generate_series(1, {1}) n
"""


async def fill(conn: AsyncConnection, namespace: str, rows: int) -> None:
    """That many slots, holds and jobs of each kind, in seconds for a million.

    Checks and foreign keys, which no plan looks at, are left off, and indexes are made after the rows.
    """
    await conn.execute(
        f"insert into {namespace}.pool (key, kind, created_at) "
        f"select 'pool ' || n, 'stock', now() from generate_series(1, {rows} / {SLOTS_PER_POOL}) n"
    )
    await conn.execute(
        f"insert into {namespace}.lane (name, created_at) select 'lane ' || n, now() from generate_series(1, {LANES}) n"
    )
    for table, statement in _FILL.items():
        name = f"{namespace}.{table}"
        parts = await fetch(conn, _DROPPED, name, name)
        for drop, _ in parts:
            await conn.execute(drop.encode())
        await conn.execute(_made(statement, namespace, rows))
        for _, make in parts:
            if make is not None:
                await conn.execute(make.encode())
    await conn.execute(_made(_FINISHED, namespace, rows))
    for table in ("pool", "lane", *_FILL, "job_finished"):
        await conn.execute(f"vacuum analyze {namespace}.{table}".encode())


def _made(statement: str, namespace: str, rows: int) -> bytes:
    return statement.replace("%%", "%").format(namespace, rows, SLOTS_PER_POOL, LANES).encode()


async def explain(
    conn: AsyncConnection, query: bytes, parameters: Mapping[str, Any] | None = None, *, run: bool = False
) -> dict[str, Any]:
    """The generic plan of `query`, prepared as psycopg prepares what is asked often; with `run` also what it took.

    What the parameters are does not matter to such a plan, only to running it.
    """
    names = list(dict.fromkeys(_PARAMETER.findall(query.decode())))
    numbered = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", query.decode())
    values = [sql.Literal(parameters[name] if parameters else None) for name in names]
    call = sql.SQL("explain ({}) execute explained {}").format(
        sql.SQL("analyze, buffers, format json" if run else "format json"),
        sql.SQL("({})").format(sql.SQL(", ").join(values)) if values else sql.SQL(""),
    )
    await conn.execute(f"prepare explained as {numbered}".encode())
    ((found,),) = await (await conn.execute(call)).fetchall()
    await conn.execute("deallocate explained")
    plan: dict[str, Any] = found[0]["Plan"]
    return plan


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def shape(plan: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """The plan as lines: node types with what they read and by which index; no costs, no counts."""
    words = [plan.get("Join Type") if plan.get("Join Type") != "Inner" else None, plan.get("Operation")]
    label = " ".join([*(word for word in words if word), plan["Node Type"]])
    if "Index Name" in plan:
        label += f" using {plan['Index Name']}"
    if target := plan.get("Relation Name") or plan.get("CTE Name") or plan.get("Function Name"):
        label += f" on {target}"
    if name := plan.get("Subplan Name"):
        label = f"{name.partition(' (')[0]}: {label}"
    yield "  " * depth + label
    for part in plan.get("Plans", ()):
        yield from shape(part, depth + 1)
