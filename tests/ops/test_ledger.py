"""The table of effects knows every kind of movement that the database can store."""

import re

from reserve.inventory.ledger import EFFECTS, MovementKind, effect_parameters


def test_every_kind_has_its_effect():
    assert set(EFFECTS) == set(MovementKind)


async def test_the_kinds_are_those_of_the_database(database, conn, namespace):
    cursor = await conn.execute(
        "select pg_get_constraintdef(oid) from pg_constraint"
        " where conrelid = %s::regclass and conname = 'movement_kind_check'",
        [f"{namespace}.movement"],
    )
    assert set(re.findall(r"'(\w+)'", (await cursor.fetchone())[0])) == {kind.value for kind in MovementKind}


def test_what_a_hold_takes_every_end_but_its_confirmation_gives_back():
    assert EFFECTS[MovementKind.PLACED].held == 1
    for kind in (MovementKind.CONFIRMED, MovementKind.RELEASED, MovementKind.EXPIRED):
        assert EFFECTS[kind].held == -1
    assert EFFECTS[MovementKind.CONFIRMED].confirmed == 1


def test_the_columns_for_statements_are_the_table():
    columns = effect_parameters()
    assert columns["kinds"] == list(EFFECTS)
    assert columns["held_effects"] == [effect.held for effect in EFFECTS.values()]
    assert {len(column) for column in columns.values()} == {len(EFFECTS)}
