"""Whether the database agrees with itself, and with the model. Pure: from what was seen to a list of complaints."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from tests.model.seen import Row, Seen
from tests.model.stock import Model

#: What each movement adds to (on_hand, held, confirmed, buffer).
_EFFECTS = {
    "adjusted": (1, 0, 0, 0),
    "buffered": (0, 0, 0, 1),
    "placed": (0, 1, 0, 0),
    "confirmed": (0, -1, 1, 0),
    "released": (0, -1, 0, 0),
    "expired": (0, -1, 0, 0),
}
_QUANTITIES = ("capacity", "held", "confirmed", "buffer")


def complaints(seen: Seen, model: Model) -> list[str]:
    """Everything that is wrong, in words; empty when all is well."""
    return [*_slots(seen), *_slots_of_pools(seen), *_lines(seen), *_movements(seen), *_reading(seen, model)]


def _slots(seen: Seen) -> Iterator[str]:
    by_state: Counter[tuple[int, str]] = Counter()
    for line in seen.lines:
        by_state[line["slot_id"], line["state"]] += line["quantity"]
    for slot in seen.slots:
        promised = slot["held"] + slot["confirmed"] + slot["buffer"] + slot["withheld"]
        if promised > slot["capacity"] + slot["shortage"]:
            yield f"oversold: {slot}"
        if min(slot[name] for name in (*_QUANTITIES, "withheld", "shortage")) < 0:
            yield f"negative: {slot}"
        for state in ("held", "confirmed"):
            if slot[state] != by_state[slot["id"], state]:
                yield f"{state} is not the sum of its lines, {by_state[slot['id'], state]}: {slot}"


def _slots_of_pools(seen: Seen) -> Iterator[str]:
    for pool in seen.pools:
        own = [slot for slot in seen.slots if slot["pool_id"] == pool["id"]]
        if [slot["number"] for slot in own] != list(range(1, len(own) + 1)):
            yield f"slots are not numbered from 1: {own}"
        free = sum(slot["capacity"] - slot["held"] - slot["confirmed"] - slot["buffer"] for slot in own)
        if {slot["short"] for slot in own} != {free < 0}:
            yield f"short must be {free < 0} on every slot, {free} are free: {own}"
        if sum(slot["shortage"] for slot in own) != max(0, -free):
            yield f"the shortage must be {max(0, -free)}: {own}"
        if {slot["open"] for slot in own} != {pool["state"] == "open"}:
            yield f"the pool is {pool['state']}, its slots are not: {own}"


def _lines(seen: Seen) -> Iterator[str]:
    slots = {slot["id"]: slot for slot in seen.slots}
    holds = {hold["id"]: hold for hold in seen.holds}
    for line in seen.lines:
        hold, slot = holds.get(line["hold_id"]), slots.get(line["slot_id"])
        if hold is None or slot is None:
            yield f"orphan: {line}"
        elif (line["pool_id"], line["window_id"]) != (slot["pool_id"], slot["window_id"]):
            yield f"a line in one pool with a slot of another: {line}"
        elif (line["state"], line["expires_at"]) != (hold["stored_state"], hold["expires_at"]):
            yield f"the line {line} is not as its hold {hold}"


def _movements(seen: Seen) -> Iterator[str]:
    keys = {pool["id"]: pool["key"] for pool in seen.pools}
    sums = {pool["id"]: [0, 0, 0, 0] for pool in seen.pools}
    of_holds: dict[UUID, list[tuple[int, str, str, int]]] = {hold["id"]: [] for hold in seen.holds}
    for movement in seen.movements:
        if movement["pool_id"] not in keys or movement["hold_id"] not in {None, *of_holds}:
            yield f"orphan: {movement}"
            continue
        own = sums[movement["pool_id"]]
        for number, factor in enumerate(_EFFECTS[movement["kind"]]):
            own[number] += factor * movement["quantity"]
        if movement["hold_id"] is not None:
            of_holds[movement["hold_id"]].append(_what(movement, keys))
        elif movement["kind"] == "adjusted" and movement["on_hand"] != own[0]:
            yield f"on_hand was {own[0]} after {movement}"
    for pool_id, key in keys.items():
        of_pool = [slot for slot in seen.slots if slot["pool_id"] == pool_id]
        stored = [sum(slot[name] for slot in of_pool) for name in _QUANTITIES]
        if stored != sums[pool_id]:
            yield f"{key}: {_QUANTITIES} are {stored}, the movements say {sums[pool_id]}"
    for hold in seen.holds:
        if sorted(of_holds[hold["id"]]) != sorted(_expected_movements(hold)):
            yield f"{hold} has moved {of_holds[hold['id']]}"


def _what(movement: Row, keys: Mapping[int, str]) -> tuple[int, str, str, int]:
    return (movement["hold_version"], movement["kind"], keys[movement["pool_id"]], movement["quantity"])


def _expected_movements(hold: Row) -> Iterator[tuple[int, str, str, int]]:
    lines = list(zip(hold["pools"], hold["quantities"], strict=True))
    yield from ((1, "placed", pool, quantity) for pool, quantity in lines)
    if hold["stored_state"] != "held":
        yield from ((hold["version"], hold["stored_state"], pool, quantity) for pool, quantity in lines)


def _reading(seen: Seen, model: Model) -> Iterator[str]:
    pools = seen.pools_as_read()
    yield from _differences("pools", sorted(pools), sorted(model.pools))
    for key in pools.keys() & model.pools.keys():
        yield from _differences(f"pool {key}", pools[key], model.pool_as_read(key, pools[key]))
    holds = seen.holds_as_read()
    yield from _differences("holds", sorted(holds), sorted(model.holds))
    for hold_id in holds.keys() & model.holds.keys():
        yield from _differences(f"hold {hold_id}", holds[hold_id], model.holds[hold_id])
    stored = {row["key"]: (row["fingerprint"], row["body"]) for row in seen.keys}
    yield from _differences("keys", stored, {key: (own[0], own[1].body) for key, own in model.keys.items()})
    adjusted = [row["id"] for row in seen.movements if row["kind"] == "adjusted" and row["reason"] != "created"]
    yield from _differences("adjustments", adjusted, sorted(each.id for each in model.adjustments))


def _differences(what: str, actual: Any, expected: Any) -> Iterator[str]:
    if actual != expected:
        yield f"{what}: is {actual}\n  must be {expected}"
