"""What a history does to the service, as data: an operation can be run, kept, printed and done again."""

from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any
from uuid import UUID

from reserve.db.connection import Database
from reserve.errors import ReserveError
from reserve.idempotency import Done, IdempotencyKey, Replay, Response, fingerprint, prune_keys
from reserve.inventory import adjustments, holds, pools
from reserve.inventory.holds import PlaceRequest, Verb
from reserve.inventory.rows import Adjust, Adjustment, Hold, Place, Pool, PoolChange, PoolState
from reserve.ops.audit import AuditReport, audit


class Unknown(Enum):
    """The caller gave up before the answer: the operation was done whole, or not at all."""

    LOST = "lost"


Answer = Done[Any] | Replay | ReserveError | tuple[Pool, bool] | Pool | Hold | AuditReport | int | None | Unknown

_renderings = count(1)


def render(value: Hold | Adjustment) -> Response:
    # Numbered, so that an answer that was made anew is never taken for one that was replayed.
    return Response(201, f"{next(_renderings)} {value}".encode(), f"/{value.id}", f'"{value.id}"')


@dataclass(frozen=True)
class PlaceHold:
    place: Place
    key: str | None = None

    def request(self) -> PlaceRequest:
        return PlaceRequest(self.place, idempotency_key(self))

    async def run(self, database: Database) -> Answer:
        return await holds.place(database, self.place, idempotency_key(self), render)


@dataclass(frozen=True)
class PlaceHolds:
    """Many requests in one call; each is answered, and judged, like one of its own."""

    requests: tuple[PlaceHold, ...]

    async def run(self, database: Database) -> list[Answer]:
        return [*await holds.place_many(database, [each.request() for each in self.requests], render)]


@dataclass(frozen=True)
class ChangeHold:
    verb: Verb
    hold_id: UUID
    key: str | None = None
    ttl_seconds: int = 0

    async def run(self, database: Database) -> Answer:
        key = idempotency_key(self)
        match self.verb:
            case Verb.CONFIRM:
                return await holds.confirm(database, self.hold_id, key, render)
            case Verb.RELEASE:
                return await holds.release(database, self.hold_id, key, render)
            case _:
                return await holds.extend(database, self.hold_id, self.ttl_seconds, key, render)


@dataclass(frozen=True)
class ChangeHolds:
    """Many changes in one call, of different holds or of the same."""

    changes: tuple[ChangeHold, ...]

    async def run(self, database: Database) -> list[Answer]:
        changes = [
            holds.Change(each.hold_id, each.verb, idempotency_key(each), each.ttl_seconds) for each in self.changes
        ]
        return [*await holds.change_many(database, changes, render)]


@dataclass(frozen=True)
class AdjustPool:
    pool: str
    wish: Adjust
    key: str | None = None

    async def run(self, database: Database) -> Answer:
        return await adjustments.adjust(database, self.pool, self.wish, idempotency_key(self), render)


@dataclass(frozen=True)
class PutPool:
    pool: str
    change: PoolChange
    if_match: int | None = None

    async def run(self, database: Database) -> Answer:
        return await pools.put(database, self.pool, self.change, if_match=self.if_match)


@dataclass(frozen=True)
class ReadPool:
    pool: str

    async def run(self, database: Database) -> Answer:
        return await pools.get(database, self.pool)


@dataclass(frozen=True)
class ReadHold:
    hold_id: UUID

    async def run(self, database: Database) -> Answer:
        return await holds.get(database, self.hold_id)


@dataclass(frozen=True)
class Sweep:
    limit: int

    async def run(self, database: Database) -> Answer:
        return await holds.expire_lapsed(database, limit=self.limit)


@dataclass(frozen=True)
class SetPoolState:
    """Drain or resume, by SQL: the pool's state and the mark on each slot in one transaction, under their locks."""

    pool: str
    state: PoolState

    async def run(self, database: Database) -> Answer:
        async def work(conn) -> None:
            schema = database.namespace
            cursor = await conn.execute(f"update {schema}.pool set state = %s where key = %s returning id", self._row())
            for (pool_id,) in await cursor.fetchall():
                await conn.execute(database.queries["slot_lock"], {"pool_ids": [pool_id]})
                is_open = self.state is PoolState.OPEN
                await conn.execute(f"update {schema}.slot set open = %s where pool_id = %s", [is_open, pool_id])

        return await database.transact(work)

    def _row(self) -> list[str]:
        return [self.state, self.pool]


@dataclass(frozen=True)
class Occupy:
    """Somebody else has these holds and all slots of a pool for some round trips, and changes nothing."""

    pool: str
    hold_ids: tuple[UUID, ...]
    round_trips: int

    async def run(self, database: Database) -> Answer:
        async def work(conn) -> None:
            await conn.execute(database.queries["hold_lock"], {"ids": list(self.hold_ids)})
            ids = f"select id from {database.namespace}.pool where key = %s"
            found = await (await conn.execute(ids, [self.pool])).fetchall()
            await conn.execute(database.queries["slot_lock"], {"pool_ids": [row[0] for row in found]})
            for _ in range(self.round_trips):
                await conn.execute("select 1")

        return await database.transact(work)


@dataclass(frozen=True)
class Prune:
    """Delete idempotency keys that are past their retention."""

    limit: int

    async def run(self, database: Database) -> Answer:
        return await prune_keys(database, limit=self.limit)


@dataclass(frozen=True)
class Audit:
    """Recompute everything, beside whatever else is going on."""

    async def run(self, database: Database) -> Answer:
        return await audit(database)


Operation = (
    PlaceHold
    | PlaceHolds
    | ChangeHold
    | ChangeHolds
    | AdjustPool
    | PutPool
    | ReadPool
    | ReadHold
    | Sweep
    | SetPoolState
    | Occupy
    | Prune
    | Audit
)
Keyed = PlaceHold | ChangeHold | AdjustPool


def idempotency_key(operation: Keyed) -> IdempotencyKey | None:
    return None if operation.key is None else IdempotencyKey(operation.key, fingerprint_of(operation))


def fingerprint_of(operation: Keyed) -> bytes:
    match operation:
        case PlaceHold(place):
            lines = [[line.pool, line.quantity] for line in place.lines]
            return fingerprint("POST", "/v1/holds", [lines, place.ttl_seconds, place.owner, place.reference])
        case ChangeHold(verb, hold_id):
            return fingerprint("POST", f"/v1/holds/{hold_id}/{verb}", operation.ttl_seconds)
        case AdjustPool(pool, wish):
            body = [wish.delta, wish.reason, wish.expected_on_hand, wish.allow_shortage]
            return fingerprint("POST", f"/v1/pools/{pool}/adjustments", body)


@dataclass(frozen=True)
class Record:
    """An operation with its answer. `begun` and `ended` are the caller's clock: what ended before another began came
    first. `span` are the database's clock before and after."""

    operation: Operation
    answer: Answer
    span: tuple[Any, Any]
    begun: float = 0
    ended: float = field(default=0)

    def __str__(self) -> str:
        answer = f"done, {self.answer.value}" if isinstance(self.answer, Done) else repr(self.answer)
        return f"[{self.begun:.4f} to {self.ended:.4f}] {self.operation}\n    → {answer}"


def told_its_effect(record: Record) -> bool:
    """Whether the answer says what the operation changed, if anything. Draining by SQL answers nothing."""
    return not isinstance(record.operation, SetPoolState)


def parts(operation: Operation, answer: Any) -> list[tuple[Operation, Any]]:
    """Each request of a call for many with its own answer; any other call as it is."""
    match operation:
        case PlaceHolds(requests=many) | ChangeHolds(changes=many):
            answers = answer if isinstance(answer, list) else [answer] * len(many)
            return list(zip(many, answers, strict=True))
        case _:
            return [(operation, answer)]
