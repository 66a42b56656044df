"""The audit names each kind of broken row of the inventory, every one seeded here, and nothing beside it.

Those of the job lane are in `test_audit_jobs`.
"""

from uuid import uuid4

import pytest

from reserve.ops.audit import audit
from reserve.ops.differences import What
from tests.ops.shop import open_shop

#: Each fault, as SQL on the shop, whose holds are `{held}`, `{confirmed}`, …; and what the audit must name, no more.
FAULTS = {
    "a placing without its movement": (
        "delete from {ns}.movement where hold_id = '{held}'",
        {What.PLACED, What.HOLD_HELD, What.HELD},
    ),
    "a placing that counts twice": (
        (
            "drop index {ns}.movement_once;"
            "insert into {ns}.movement (at, pool_id, hold_id, hold_version, kind, quantity)"
            " select at, pool_id, hold_id, hold_version, kind, quantity from {ns}.movement where hold_id = '{held}'"
        ),
        {What.PLACED, What.HOLD_HELD, What.HELD},
    ),
    "a movement of another pool than the line's": (
        (
            "insert into {ns}.movement (at, pool_id, hold_id, hold_version, kind, quantity)"
            " select now(), (select id from {ns}.pool where key = 'b'), '{held}', 1, 'placed', 2"
        ),
        {What.PLACED, What.HOLD_HELD, What.HELD},
    ),
    "an adjustment that never reached the slots": (
        (
            "insert into {ns}.movement (at, pool_id, kind, quantity, reason, on_hand)"
            " select now(), id, 'adjusted', 5, 'lost', 15 from {ns}.pool where key = 'a'"
        ),
        {What.ON_HAND},
    ),
    "stock that no adjustment brought": ("update {ns}.slot set capacity = capacity + 5", {What.ON_HAND}),
    "a buffer that nobody set": ("update {ns}.slot set buffer = buffer + 1", {What.BUFFER}),
    "stock withheld by nobody": ("update {ns}.slot set withheld = 1", {What.WITHHELD}),
    "more held than by holds": ("update {ns}.slot set held = held + 1", {What.HELD, What.SLOT_HELD}),
    "less held than by holds": (
        "update {ns}.slot set held = held - 1 where held > 0",
        {What.HELD, What.SLOT_HELD},
    ),
    "more confirmed than by holds": (
        "update {ns}.slot set confirmed = confirmed + 1",
        {What.CONFIRMED, What.SLOT_CONFIRMED},
    ),
    "a shortage that is none": ("update {ns}.slot set shortage = 3, short = true", {What.SHORTAGE}),
    "a mark without a shortage": ("update {ns}.slot set short = true", {What.SHORT}),
    "a pool of stock without a slot": (
        "insert into {ns}.pool (key, kind, created_at) values ('c', 'stock', now())",
        {What.SLOTS},
    ),
    "a hold without lines": (
        "delete from {ns}.hold_line where hold_id = '{released}'",
        {What.LINES, What.PLACED},
    ),
    "lines and movements without their hold": (
        (
            "alter table {ns}.hold_line drop constraint hold_line_hold_id_fkey;"
            "delete from {ns}.hold where id = '{released}'"
        ),
        {What.HOLD_MISSING},
    ),
    "a movement of no hold": (
        (
            "insert into {ns}.movement (at, pool_id, hold_id, hold_version, kind, quantity)"
            " select now(), id, '{nobody}', 1, 'placed', 1 from {ns}.pool where key = 'a'"
        ),
        {What.HOLD_MISSING, What.PLACED, What.HOLD_HELD, What.HELD},
    ),
    "movements of no pool": (
        "insert into {ns}.movement (at, pool_id, kind, quantity) values (now(), 4711, 'adjusted', 1)",
        {What.POOL_MISSING},
    ),
    "a line of no slot": (
        "update {ns}.hold_line set slot_id = 4711 where hold_id = '{held}'",
        {What.LINE_SLOT, What.SLOT_HELD},
    ),
    "a line of another window than its slot's": (
        "update {ns}.hold_line set window_id = 60 where hold_id = '{released}'",
        {What.LINE_SLOT, What.PLACED, What.HOLD_STATE, What.HOLD_VERSION},
    ),
    "a line of no pool": (
        "update {ns}.hold_line set pool_id = 4711 where hold_id = '{released}'",
        {What.POOL_MISSING, What.LINE_SLOT, What.PLACED, What.HOLD_STATE, What.HOLD_VERSION},
    ),
    "a line in another state than its hold": (
        "update {ns}.hold_line set state = 'expired' where hold_id = '{released}'",
        {What.LINE_STATE},
    ),
    "a line with another expiry than its hold": (
        "update {ns}.hold_line set expires_at = expires_at + interval '1 second' where hold_id = '{held}'",
        {What.LINE_EXPIRES_AT},
    ),
    "a hold confirmed after it lapsed": (
        (
            "alter table {ns}.hold drop constraint hold_final_in_time;"
            "update {ns}.hold set finalized_at = expires_at + interval '1 second' where id = '{confirmed}'"
        ),
        {What.FINALIZED_AT},
    ),
    "an expired hold that ended at another time": (
        "update {ns}.hold set finalized_at = expires_at - interval '1 second' where id = '{expired}'",
        {What.FINALIZED_AT},
    ),
    "a hold that expired early": (
        (
            "update {ns}.hold set expires_at = '2999-01-01', finalized_at = '2999-01-01' where id = '{expired}';"
            "update {ns}.hold_line set expires_at = '2999-01-01' where hold_id = '{expired}'"
        ),
        {What.EXPIRED_EARLY},
    ),
    "a release that never happened": (
        "delete from {ns}.movement where hold_id = '{released}' and kind = 'released'",
        {What.HOLD_STATE, What.HOLD_HELD, What.HOLD_VERSION, What.HELD},
    ),
    "a release that happened twice": (
        (
            "insert into {ns}.movement (at, pool_id, hold_id, hold_version, kind, quantity)"
            " select now(), id, '{released}', 3, 'released', 1 from {ns}.pool where key = 'a'"
        ),
        {What.HOLD_STATE, What.HOLD_HELD, What.HOLD_VERSION, What.HELD},
    ),
    "a return of what was confirmed that the movements do not know": (
        "update {ns}.hold_line set returned = 1 where hold_id = '{confirmed}'",
        {What.HOLD_CONFIRMED, What.SLOT_CONFIRMED},
    ),
    "a version that its movements have passed": (
        "update {ns}.hold set version = 1 where id = '{confirmed}'",
        {What.HOLD_VERSION},
    ),
    "more promised than there is": (
        (
            "alter table {ns}.slot drop constraint slot_never_oversold;"
            "update {ns}.slot set held = held + 5 where confirmed > 0"
        ),
        {What.OVERSOLD, What.SLOT_OVERSOLD, What.SHORTAGE, What.HELD, What.SLOT_HELD},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_audit_names(fault, database, conn, namespace):
    shop = await open_shop(database)
    sql, expected = FAULTS[fault]
    ids = {name: hold.id for name, hold in shop.items()}
    for statement in sql.split(";"):
        await conn.execute(statement.format(ns=namespace, nobody=uuid4(), **ids))
    report = await audit(database)
    assert {difference.what for difference in report.differences} == expected
    assert report.count == len(report.differences) > 0
    assert not report.clean


def test_every_difference_that_there_is_has_its_fault():
    known = {what for what in What if not what.startswith("job_")}
    assert set().union(*(expected for _, expected in FAULTS.values())) == known
