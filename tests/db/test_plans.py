"""The plan that each statement gets, whatever the size of its tables when it is planned; texts and plans as snapshots.

A plan is asked for as the service gets it: with its session's options, prepared, without knowledge of parameters. Such
a plan is kept until a table is analysed again, so one that is made at 0 rows must do at a million. Snapshots are
renewed as `conftest` says, once for each version of PostgreSQL that has some: planners differ in what joins what.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import AsyncConnection

from reserve.db.claim import (
    CLAIMS,
    HOLD_EXPIRE_CLAIM,
    HOLD_PLACE_CLAIM,
    JOB_ABANDON_CLAIM,
    JOB_CLAIM,
    JOB_DUE_CLAIM,
    JOB_RESCUE_CLAIM,
)
from reserve.db.connection import session_options
from reserve.db.query import Queries
from tests.db.plans import explain, fill, nodes, shape

#: Whose planner's choices are kept; of others only what must hold of every plan is looked at.
VERSIONS = (15, 18)

#: Which index finds the rows to claim: the whole of what makes them ready, and their order.
INDEX = {
    HOLD_PLACE_CLAIM.name: "slot_number",
    HOLD_EXPIRE_CLAIM.name: "hold_lapsed",
    JOB_CLAIM.name: "job_ready",
    JOB_DUE_CLAIM.name: "job_due",
    JOB_RESCUE_CLAIM.name: "job_running",
    JOB_ABANDON_CLAIM.name: "job_running",
}

_LAPSED = {
    "lanes": ["lane 1"],
    "sinces": [datetime(2000, 1, 1, tzinfo=UTC)],
    "limit": 10,
    "rescues_max": 5,
}

#: What each is asked with: one pool's slot; ten holds or jobs.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    HOLD_PLACE_CLAIM.name: {
        "key_requests": [0],
        "principals": [0],
        "keys": ["some key"],
        "line_requests": [0],
        "line_pools": ["pool 7"],
        "line_quantities": [1],
    },
    HOLD_EXPIRE_CLAIM.name: {"limit": 10},
    JOB_CLAIM.name: {
        "lane": "lane 1",
        "worker": "w",
        "limit": 10,
        "lease_seconds": None,
        "lease_seconds_default": 60,
        "after_rank": None,
        "after_run_at": None,
        "after_id": None,
    },
    JOB_DUE_CLAIM.name: {"lanes": ["lane 1"], "limit": 10},
    JOB_RESCUE_CLAIM.name: _LAPSED,
    JOB_ABANDON_CLAIM.name: _LAPSED,
}

#: Pages that a claim may touch, its update included; a walk over a thousand rows would touch more. Abandoned jobs are
#: few among the running ones, which are all looked at for them.
BUFFERS_MAX = {name: 60 if name == HOLD_PLACE_CLAIM.name else 300 for name in INDEX}

#: Planned each time they are asked, for the filters they are asked with; and the audit, which reads everything.
NOT_PREPARED = ("hold_find", "pool_find", "job_find", "lane_find", "audit_")


@pytest.fixture
async def service_conn(database_url, settings):
    """A session like the service's, but that it may take its time."""
    async with await AsyncConnection.connect(database_url, autocommit=True, **session_options(settings)) as conn:
        await conn.execute("set statement_timeout = 0")
        yield conn


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_the_text_of_the_claim(claim, match_snapshot):
    match_snapshot(f"{claim.name}.sql", Queries("reserve")[claim.name].decode().replace('"reserve".', "") + "\n")


@pytest.mark.parametrize("rows", [0, 1000, 1_000_000])
async def test_every_statement_finds_its_rows_by_its_index(rows, service_conn, namespace, match_snapshot):
    """At 0 the tables have never been analysed: a session of a new namespace keeps that plan for a while."""
    if rows:
        await fill(service_conn, namespace, rows)
    queries = Queries(namespace)
    indexes = []
    for name in sorted(name for name in queries if not name.startswith(NOT_PREPARED)):
        plan = list(nodes(await explain(service_conn, queries[name])))
        assert not [node for node in plan if node["Node Type"] == "Seq Scan"], name
        searched = [node for node in plan if "Index Name" in node]
        # Without a condition the whole index would be read.
        assert all("Index Cond" in node for node in searched), name
        indexes.append(" ".join([name, *sorted({node["Index Name"] for node in searched})]))
    match_snapshot("indexes", "\n".join(indexes) + "\n")

    for claim in CLAIMS:
        query = queries[claim.name]
        plan = await explain(service_conn, query)
        judge(plan, claim)
        version = service_conn.info.server_version // 10_000
        if version in VERSIONS:
            match_snapshot(f"{claim.name}.plan-{rows}.postgresql-{version}", "\n".join(shape(plan)) + "\n")
        if rows:
            async with service_conn.transaction(force_rollback=True):
                ran = await explain(service_conn, query, PARAMETERS[claim.name], run=True)
            assert ran["Shared Hit Blocks"] + ran["Shared Read Blocks"] <= BUFFERS_MAX[claim.name], ran


def judge(plan, claim):
    """Whatever the rest of the plan looks like: rows are found in the order of the index, and locked as they come."""
    everything = list(nodes(plan))
    (lock,) = [node for node in everything if node["Node Type"] == "LockRows"]
    (scan,) = lock["Plans"]
    assert (scan["Node Type"], scan["Index Name"], scan["Alias"]) == ("Index Scan", INDEX[claim.name], "t")
    (limit,) = [node for node in everything if lock in node.get("Plans", ())]
    assert limit["Node Type"] == "Limit"
    (update,) = [
        node for node in everything if node["Node Type"] == "ModifyTable" and node["Operation"] in {"Update", "Delete"}
    ]
    found = [node for node in nodes(update) if "Index Name" in node]
    assert [node["Index Name"] for node in found] == [f"{claim.table}_pkey"]
