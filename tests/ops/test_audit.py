"""The audit is silent about what is true, also while it changes, and names an oversale. For all else: `test_faults`."""

from dataclasses import replace
from uuid import uuid4

from reserve.inventory import adjustments, holds, pools
from reserve.inventory.rows import Adjust, PoolChange
from reserve.ops import audit as audit_module
from reserve.ops.audit import audit
from reserve.ops.audit_reading import Pace, Progress
from reserve.ops.differences import DIFFERENCES_MAX, Difference, Findings, What
from tests.ops.shop import lapse, open_shop, place, render

# --- what is true -------------------------------------------------------------------------------------------


async def test_an_empty_namespace_has_no_difference(database):
    report = await audit(database)
    assert report.clean
    assert (report.pools, report.holds, report.movements, report.jobs) == (0, 0, 0, 0)


async def test_holds_of_every_fate_have_no_difference(database):
    await open_shop(database)
    report = await audit(database)
    assert report.differences == ()
    assert report.clean
    assert (report.pools, report.slots, report.holds, report.lines) == (2, 2, 4, 4)
    assert report.movements == 3 + 4 + 3, "two pools and a buffer; four placed; three decided"


async def test_a_hold_that_has_lapsed_and_is_not_swept_is_no_difference(database):
    await pools.put(database, "a", PoolChange(on_hand=3))
    await lapse(database, (await place(database, "a", 2)).id)
    assert (await audit(database)).clean


async def test_an_extended_hold_is_no_difference_before_and_after_its_end(database):
    await pools.put(database, "a", PoolChange(on_hand=3))
    hold = await place(database, "a", 2, ttl_seconds=60)
    await holds.extend(database, hold.id, 600, None, render)
    assert (await audit(database)).clean
    await holds.release(database, hold.id, None, render)
    assert (await audit(database)).clean


async def test_a_shortage_that_was_allowed_is_no_difference_before_and_after_it_is_paid(database):
    await pools.put(database, "a", PoolChange(on_hand=1000))
    hold = await place(database, "a", 900)
    await adjustments.adjust(database, "a", Adjust(-500, "water", allow_shortage=True), None, render)
    assert (await pools.get(database, "a")).on_hand == 500
    assert (await audit(database)).clean
    await holds.release(database, hold.id, None, render)
    assert (await audit(database)).clean


async def test_what_others_are_just_writing_is_no_difference(database, conn, namespace):
    shop = await open_shop(database)
    async with conn.transaction():
        # Half of a release: the lines and the movement are still to come.
        await conn.execute(
            f"update {namespace}.hold set state = 'released', version = 2, finalized_at = now() where id = %s",
            [shop["held"].id],
        )
        await conn.execute(f"update {namespace}.slot set held = 0")
        assert (await audit(database)).clean


async def test_every_pool_and_hold_is_looked_at_when_pages_are_small(database, monkeypatch):
    monkeypatch.setattr(audit_module, "Pace", lambda _first, _most: Pace(1, 1))
    await open_shop(database)
    steps = []
    report = await audit(database, steps.append)
    assert (report.pools, report.holds, report.lines) == (2, 4, 4)
    assert report.movements == 10
    assert [(step.what, step.done) for step in steps if step.what == "pools"] == [("pools", 1), ("pools", 2)]
    assert [step.done for step in steps if step.what == "holds"][:4] == [1, 2, 3, 4]
    assert all(isinstance(step, Progress) for step in steps)


# --- what is not --------------------------------------------------------------------------------------------


async def test_a_difference_says_where_it_is_what_is_stored_and_what_was_recomputed(database, conn, namespace):
    shop = await open_shop(database)
    await conn.execute(f"update {namespace}.slot set held = 1 where held > 0")
    await conn.execute(f"update {namespace}.hold set version = 9 where id = %s", [shop["released"].id])
    released = shop["released"].id
    assert (await audit(database)).differences == (
        Difference("a", What.HELD, "1", "2"),
        Difference("a", What.SLOT_HELD, "1", "2", slot=1),
        Difference("a", What.HOLD_VERSION, "9", "2", hold=released),
    )
    assert Difference("a", What.SLOT_HELD, "1", "2", slot=1).sentence == (
        "pool 'a', slot 1: slot_held: stored 1, recomputed 2"
    )


# --- oversold, as it would happen ---------------------------------------------------------------------------


async def add_hold_past_all_checks(conn, namespace, *, quantity, into_slot):
    """What a claim without lock and constraint would write: everything in order, but for what is there."""
    hold = uuid4()
    await conn.execute(
        f"insert into {namespace}.hold (id, state, created_at, expires_at)"
        " values (%s, 'held', now(), now() + interval '1 hour')",
        [hold],
    )
    await conn.execute(
        f"insert into {namespace}.hold_line (hold_id, number, slot_id, pool_id, window_id, quantity, state, expires_at)"
        f" select %(hold)s, 1, s.id, s.pool_id, 0, %(quantity)s, 'held', h.expires_at"
        f" from {namespace}.slot s join {namespace}.pool p on p.id = s.pool_id"
        f" join {namespace}.hold h on h.id = %(hold)s where p.key = 'a'",
        {"hold": hold, "quantity": quantity},
    )
    await conn.execute(
        f"insert into {namespace}.movement (at, pool_id, hold_id, hold_version, kind, quantity)"
        f" select now(), id, %s, 1, 'placed', %s from {namespace}.pool where key = 'a'",
        [hold, quantity],
    )
    await conn.execute(
        f"update {namespace}.slot set held = held + %s"
        f" where pool_id = (select id from {namespace}.pool where key = 'a')",
        [into_slot],
    )


async def test_two_buyers_of_the_last_unit_are_named_as_oversold(database, conn, namespace):
    await conn.execute(f"alter table {namespace}.slot drop constraint slot_never_oversold")
    await pools.put(database, "a", PoolChange(on_hand=1))
    await place(database, "a", 1)
    await add_hold_past_all_checks(conn, namespace, quantity=1, into_slot=1)
    report = await audit(database)
    assert report.differences == (
        Difference("a", What.SHORTAGE, "0", "1"),
        Difference("a", What.OVERSOLD, "2", "at most 1"),
        Difference("a", What.SLOT_OVERSOLD, "2", "at most 1", slot=1),
    )


async def test_an_update_lost_between_two_buyers_is_named_as_oversold_although_the_slot_looks_right(
    database, conn, namespace
):
    await pools.put(database, "a", PoolChange(on_hand=1))
    await place(database, "a", 1)
    await add_hold_past_all_checks(conn, namespace, quantity=1, into_slot=0)
    report = await audit(database)
    assert report.differences == (
        Difference("a", What.HELD, "1", "2"),
        Difference("a", What.OVERSOLD, "2", "at most 1"),
        Difference("a", What.SLOT_HELD, "1", "2", slot=1),
    )


# --- bounds -------------------------------------------------------------------------------------------------


async def test_what_a_page_does_not_show_is_counted_all_the_same(database, conn, namespace, monkeypatch):
    monkeypatch.setattr(audit_module, "DIFFERENCES_MAX", 1)
    await pools.put(database, "a", PoolChange(on_hand=5))
    for _ in range(3):
        await place(database, "a", 1)
    await conn.execute(f"update {namespace}.hold_line set expires_at = expires_at + interval '1 second'")
    report = await audit(database)
    assert report.count == 3
    assert len(report.differences) == 1


def test_differences_in_memory_are_bounded():
    findings = Findings()
    findings.add([Difference("a", What.HELD, "1", "2")] * (DIFFERENCES_MAX + 5), unseen=7)
    assert len(findings.kept) == DIFFERENCES_MAX
    assert findings.count == DIFFERENCES_MAX + 12


def test_a_page_grows_while_statements_are_short_and_shrinks_when_they_are_long():
    pace = Pace(16, 100)
    pace.took(0.001)
    assert pace.size == 32
    pace.took(0.2)
    assert pace.size == 32, "about right"
    for _ in range(5):
        pace.took(0.001)
    assert pace.size == 100
    for _ in range(10):
        pace.took(10)
    assert pace.size == 1


def test_a_sentence_leaves_out_what_a_difference_has_not():
    difference = Difference(None, What.LINES, "0", "at least 1", hold=uuid4())
    assert difference.sentence == f"hold {difference.hold}: lines: stored 0, recomputed at least 1"
    assert replace(difference, window_id=60).sentence.startswith("window 60, hold ")
