"""What the tables refuse, whoever writes to them: each check by name, and the ledger that only grows."""

import pytest
from psycopg import errors as pg
from psycopg import sql

from tests.steps import fetch

NOW, LATER, LAST = "2026-01-01 00:00Z", "2026-01-01 01:00Z", "2026-01-01 02:00Z"
LONG = "x" * 201
HOLD = "00000000-0000-0000-0000-000000000001"

#: A row of each table that is right; `%(pool)s` stands for a pool that exists.
RIGHT = {
    "pool": {"key": "tea", "kind": "stock", "created_at": NOW},
    "slot": {"pool_id": None, "number": 2, "capacity": 5, "held": 2, "confirmed": 1, "buffer": 1, "withheld": 1},
    "hold": {"id": HOLD[:-1] + "2", "state": "held", "created_at": NOW, "expires_at": LATER},
    "hold_line": {
        "hold_id": HOLD,
        "number": 1,
        "slot_id": 1,
        "pool_id": 1,
        "window_id": 0,
        "quantity": 2,
        "state": "held",
        "expires_at": LATER,
    },
    "movement": {"at": NOW, "pool_id": 1, "hold_id": HOLD, "hold_version": 2, "kind": "placed", "quantity": 1},
    "idempotency_key": {
        "key": "k",
        "fingerprint": b"x" * 32,
        "status": 201,
        "body": b"",
        "created_at": NOW,
        "expires_at": LATER,
    },
    "lane": {"name": "mail", "created_at": NOW},
    "job": {
        "lane_id": None,
        "kind": "k",
        "payload": "{}",
        "rank": 0,
        "run_at": NOW,
        "state": "running",
        "token": 1,
        "attempt": 1,
        "max_attempts": 3,
        "failures": 2,
        "created_at": NOW,
        "started_at": NOW,
        "lease_expires_at": LATER,
        "worker": "w",
    },
    "job_scheduled": {
        "id": 1,
        "lane_id": None,
        "kind": "k",
        "payload": "{}",
        "rank": 0,
        "run_at": LATER,
        "max_attempts": 3,
        "failures": 2,
        "created_at": NOW,
    },
    "job_finished": {
        "id": 1,
        "lane_id": None,
        "kind": "k",
        "payload": "{}",
        "rank": 0,
        "run_at": NOW,
        "state": "succeeded",
        "token": 1,
        "attempt": 1,
        "max_attempts": 3,
        "failures": 0,
        "rescues": 0,
        "output": "{}",
        "created_at": NOW,
        "finished_at": LATER,
    },
}

READY = {"state": "ready", "lease_expires_at": None}

WRONG = [
    # table, what is wrong with it, which check says so
    ("pool", {"key": ""}, "pool_key_check"),
    ("pool", {"key": LONG}, "pool_key_check"),
    ("pool", {"kind": "stocks"}, "pool_kind_check"),
    ("pool", {"state": "closed"}, "pool_state_check"),
    ("pool", {"hold_ttl_seconds": 0}, "pool_hold_ttl_seconds_check"),
    ("pool", {"hold_ttl_seconds": 366 * 86_400 + 1}, "pool_hold_ttl_seconds_check"),
    ("pool", {"max_per_owner": 0}, "pool_max_per_owner_check"),
    ("pool", {"max_per_owner": 10**12 + 1}, "pool_max_per_owner_check"),
    ("pool", {"late_confirm": "sometimes"}, "pool_late_confirm_check"),
    ("pool", {"kind": "quota", "quota_limit": -1}, "pool_quota_limit_check"),
    ("pool", {"metadata": "[]"}, "pool_metadata_check"),
    ("pool", {"version": 0}, "pool_version_check"),
    ("pool", {"state": "archived"}, "pool_archived_at"),
    ("pool", {"archived_at": NOW}, "pool_archived_at"),
    ("pool", {"kind": "quota", "quota_limit": 1, "window_every": "day"}, "pool_window_whole"),
    ("pool", {"kind": "quota", "quota_limit": 1, "window_time_zone": "UTC"}, "pool_window_whole"),
    ("pool", {"window_every": "day", "window_time_zone": "UTC"}, "pool_window_of_quota"),
    ("pool", {"quota_limit": 1}, "pool_limit_of_quota"),
    ("pool", {"kind": "quota"}, "pool_limit_of_quota"),
    ("slot", {"window_id": -1}, "slot_window_id_check"),
    ("slot", {"number": 0}, "slot_number_check"),
    ("slot", {"capacity": -1, "held": 0, "confirmed": 0, "buffer": 0, "withheld": 0}, "slot_capacity_check"),
    ("slot", {"held": -1}, "slot_held_check"),
    ("slot", {"confirmed": -1}, "slot_confirmed_check"),
    ("slot", {"buffer": -1}, "slot_buffer_check"),
    ("slot", {"withheld": -1}, "slot_withheld_check"),
    ("slot", {"shortage": -1, "short": True, "capacity": 9}, "slot_shortage_check"),
    ("slot", {"held": 3}, "slot_never_oversold"),
    ("slot", {"confirmed": 2}, "slot_never_oversold"),
    ("slot", {"buffer": 2}, "slot_never_oversold"),
    ("slot", {"withheld": 2}, "slot_never_oversold"),
    ("slot", {"capacity": 4}, "slot_never_oversold"),
    ("slot", {"capacity": 2, "shortage": 2, "short": True}, "slot_never_oversold"),
    ("slot", {"capacity": 4, "shortage": 1}, "slot_short"),
    ("hold", {"state": "lapsed", "finalized_at": NOW}, "hold_state_check"),
    ("hold", {"owner": ""}, "hold_owner_check"),
    ("hold", {"owner": LONG}, "hold_owner_check"),
    ("hold", {"reference": ""}, "hold_reference_check"),
    ("hold", {"reference": LONG}, "hold_reference_check"),
    ("hold", {"metadata": "7"}, "hold_metadata_check"),
    ("hold", {"expires_at": NOW}, "hold_check"),
    ("hold", {"version": 0}, "hold_version_check"),
    ("hold", {"state": "confirmed"}, "hold_finalized_at"),
    ("hold", {"finalized_at": NOW}, "hold_finalized_at"),
    ("hold", {"state": "confirmed", "finalized_at": LAST}, "hold_final_in_time"),
    ("hold", {"state": "expired", "finalized_at": LAST}, "hold_final_in_time"),
    ("hold_line", {"number": 0}, "hold_line_number_check"),
    ("hold_line", {"quantity": 0}, "hold_line_quantity_check"),
    ("hold_line", {"quantity": 10**12 + 1}, "hold_line_quantity_check"),
    ("hold_line", {"state": "lapsed"}, "hold_line_state_check"),
    ("hold_line", {"fulfilled": -1}, "hold_line_fulfilled_check"),
    ("hold_line", {"returned": -1}, "hold_line_returned_check"),
    ("hold_line", {"fulfilled": 2, "returned": 1}, "hold_line_given_out"),
    ("movement", {"kind": "lost"}, "movement_kind_check"),
    ("movement", {"hold_id": None, "hold_version": None, "kind": "adjusted", "reason": LONG}, "movement_reason_check"),
    ("movement", {"hold_version": None}, "movement_of_hold"),
    ("movement", {"hold_id": None, "kind": "adjusted"}, "movement_of_hold"),
    ("movement", {"kind": "adjusted"}, "movement_kind_of_hold"),
    ("movement", {"hold_id": None, "hold_version": None}, "movement_kind_of_hold"),
    ("movement", {"on_hand": 3}, "movement_on_hand"),
    ("idempotency_key", {"key": ""}, "idempotency_key_key_check"),
    ("idempotency_key", {"key": "x" * 256}, "idempotency_key_key_check"),
    ("idempotency_key", {"fingerprint": b"x"}, "idempotency_key_fingerprint_check"),
    ("idempotency_key", {"status": 409}, "idempotency_key_status_check"),
    ("idempotency_key", {"status": 199}, "idempotency_key_status_check"),
    ("idempotency_key", {"expires_at": NOW}, "idempotency_key_check"),
    ("lane", {"name": ""}, "lane_name_check"),
    ("lane", {"name": LONG}, "lane_name_check"),
    ("lane", {"lease_seconds": 0}, "lane_lease_seconds_check"),
    ("lane", {"lease_seconds": 86_401}, "lane_lease_seconds_check"),
    ("lane", {"max_attempts": 0}, "lane_max_attempts_check"),
    ("lane", {"max_attempts": 101}, "lane_max_attempts_check"),
    ("lane", {"max_running": 0}, "lane_max_running_check"),
    ("lane", {"backoff_first_seconds": -1, "backoff_seconds_max": 1}, "lane_backoff_first_seconds_check"),
    ("lane", {"backoff_first_seconds": 1, "backoff_seconds_max": 1e9}, "lane_backoff_seconds_max_check"),
    ("lane", {"backoff_first_seconds": 1}, "lane_backoff_whole"),
    ("lane", {"backoff_first_seconds": 2, "backoff_seconds_max": 1}, "lane_backoff_order"),
    ("lane", {"retention_days": 0}, "lane_retention_days_check"),
    ("lane", {"version": 0}, "lane_version_check"),
    ("job", {"kind": ""}, "job_kind_check"),
    ("job", {"rank": -32_768}, "job_rank_check"),
    ("job", {**READY, "state": "lost"}, "job_state_check"),
    ("job", {"token": -1, **READY}, "job_token_check"),
    ("job", {"attempt": -1}, "job_attempt_check"),
    ("job", {"max_attempts": 101}, "job_max_attempts_check"),
    ("job", {"failures": -1}, "job_failures_check"),
    ("job", {"rescues": -1}, "job_rescues_check"),
    ("job", {"unique_key": ""}, "job_unique_key_check"),
    ("job", {"order_key": LONG}, "job_order_key_check"),
    ("job", {"worker": ""}, "job_worker_check"),
    ("job", {"lease_expires_at": None}, "job_leased"),
    ("job", {"state": "ready"}, "job_leased"),
    ("job", {"started_at": None}, "job_held"),
    ("job", {"worker": None}, "job_held"),
    ("job", {"token": 0}, "job_held"),
    ("job", {"rescued": True}, "job_rescued_is_ready"),
    ("job", {"cancel_requested": True, **READY}, "job_cancel_of_running"),
    ("job", {"failures": 3}, "job_failures_left"),
    ("job_scheduled", {"kind": LONG}, "job_scheduled_kind_check"),
    ("job_scheduled", {"rank": -32_768}, "job_scheduled_rank_check"),
    ("job_scheduled", {"token": -1}, "job_scheduled_token_check"),
    ("job_scheduled", {"attempt": -1}, "job_scheduled_attempt_check"),
    ("job_scheduled", {"max_attempts": 0, "failures": -1}, "job_scheduled_failures_check"),
    ("job_scheduled", {"max_attempts": 101}, "job_scheduled_max_attempts_check"),
    ("job_scheduled", {"rescues": -1}, "job_scheduled_rescues_check"),
    ("job_scheduled", {"unique_key": LONG}, "job_scheduled_unique_key_check"),
    ("job_scheduled", {"order_key": ""}, "job_scheduled_order_key_check"),
    ("job_scheduled", {"worker": LONG}, "job_scheduled_worker_check"),
    ("job_scheduled", {"failures": 3}, "job_scheduled_failures_left"),
    ("job_finished", {"state": "ready", "output": None}, "job_finished_state_check"),
    ("job_finished", {"token": -1}, "job_finished_token_check"),
    ("job_finished", {"state": "discarded"}, "job_finished_output"),
]


@pytest.fixture
async def pool_id(conn, namespace):
    """A pool with a slot and a hold, for rows that refer to one."""
    ((pool_id,),) = await fetch(
        conn, f"insert into {namespace}.pool (key, kind, created_at) values ('milk', 'stock', now()) returning id"
    )
    await conn.execute(f"insert into {namespace}.slot (pool_id, number, capacity) values (%s, 1, 5)", [pool_id])
    await conn.execute(
        f"insert into {namespace}.hold (id, state, created_at, expires_at) values (%s, 'held', %s, %s)",
        [HOLD, NOW, LATER],
    )
    await conn.execute(
        f"insert into {namespace}.lane (id, name, created_at) overriding system value values (9, 'l', now())"
    )
    return pool_id


async def insert(conn, namespace, table, pool_id, **changes):
    row = {**RIGHT[table], **changes}
    if "pool_id" in row:
        row["pool_id"] = pool_id
    if "lane_id" in row:
        row["lane_id"] = 9
    columns = sql.SQL(", ").join(map(sql.Identifier, row))
    values = sql.SQL(", ").join(sql.Placeholder() * len(row))
    statement = sql.SQL("insert into {} ({}) overriding system value values ({})").format(
        sql.Identifier(namespace, table), columns, values
    )
    await conn.execute(statement, list(row.values()))


async def test_a_row_that_is_right_is_taken(conn, namespace, pool_id):
    for table in RIGHT:
        await insert(conn, namespace, table, pool_id)


async def test_each_check_refuses_what_is_wrong(conn, namespace, pool_id):
    for table, changes, name in WRONG:
        with pytest.raises(pg.CheckViolation) as refused:
            await insert(conn, namespace, table, pool_id, **changes)
        assert refused.value.diag.constraint_name == name, (table, changes)


async def test_no_check_is_left_out_here(conn, namespace):
    found = await fetch(
        conn,
        "select conname from pg_constraint where contype = 'c' and connamespace = %s::regnamespace",
        namespace,
    )
    assert {name for _, _, name in WRONG} == {name for (name,) in found}


async def test_a_slot_may_be_short_by_exactly_its_shortage(conn, namespace, pool_id):
    await insert(conn, namespace, "slot", pool_id, capacity=0, shortage=5, short=True)


@pytest.mark.parametrize(
    ("first", "second", "index"),
    [
        (("pool", {}), ("pool", {"kind": "units"}), "pool_key_live"),
        (("slot", {}), ("slot", {"capacity": 9}), "slot_number"),
        (("hold", {}), ("hold", {}), "hold_pkey"),
        (("hold_line", {}), ("hold_line", {"quantity": 1}), "hold_line_pkey"),
        (("movement", {}), ("movement", {"quantity": 2}), "movement_once"),
        (("idempotency_key", {}), ("idempotency_key", {"status": 200}), "idempotency_key_pkey"),
        (("lane", {}), ("lane", {"paused": True}), "lane_name_key"),
        (("job", {"id": 7}), ("job", {"id": 7}), "job_pkey"),
        (("job_scheduled", {}), ("job_scheduled", {"kind": "other"}), "job_scheduled_pkey"),
        (("job_finished", {}), ("job_finished", {"kind": "other"}), "job_finished_rest_pkey"),
    ],
)
async def test_what_must_be_once_is_once(conn, namespace, pool_id, first, second, index):
    await insert(conn, namespace, first[0], pool_id, **first[1])
    with pytest.raises(pg.UniqueViolation) as refused:
        await insert(conn, namespace, second[0], pool_id, **second[1])
    assert refused.value.diag.constraint_name == index


@pytest.mark.parametrize("other", [{"hold_version": 3}, {"window_id": 60}, {"kind": "confirmed"}])
async def test_movements_of_one_hold_differ_in_version_window_or_kind(conn, namespace, pool_id, other):
    await insert(conn, namespace, "movement", pool_id)
    await insert(conn, namespace, "movement", pool_id, **other)


async def test_movements_of_a_pool_may_be_alike(conn, namespace, pool_id):
    for _ in range(2):
        await insert(conn, namespace, "movement", pool_id, hold_id=None, hold_version=None, kind="adjusted")


async def test_the_key_of_an_archived_pool_is_free(conn, namespace, pool_id):
    for _ in range(2):
        await insert(conn, namespace, "pool", pool_id, state="archived", archived_at=NOW)
    await insert(conn, namespace, "pool", pool_id)


async def test_a_movement_is_never_changed(conn, namespace, pool_id):
    await insert(conn, namespace, "movement", pool_id)
    with pytest.raises(pg.RestrictViolation, match="append-only"):
        await conn.execute(f"update {namespace}.movement set quantity = quantity")


async def test_a_line_has_a_hold_and_a_slot_has_a_pool(conn, namespace, pool_id):
    with pytest.raises(pg.ForeignKeyViolation):
        await insert(conn, namespace, "hold_line", pool_id, hold_id=HOLD[:-1] + "9")
    with pytest.raises(pg.ForeignKeyViolation):
        await insert(conn, namespace, "slot", pool_id + 999)


async def test_no_quantity_of_a_slot_is_in_an_index(conn, namespace):
    """So that its updates stay on their page."""
    rows = await fetch(
        conn,
        "select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey) "
        "where i.indrelid = %s::regclass",
        f"{namespace}.slot",
    )
    assert {name for (name,) in rows} == {"id", "pool_id", "window_id", "number"}
