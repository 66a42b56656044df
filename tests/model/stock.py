"""The model: pools and holds as dicts, as they must read, with the few rules of design.md that decide who gets what.

Knows neither slots nor the sweep nor locks: nothing a client reads may depend on them. A hold is kept as it reads, so
one that has lapsed is kept as expired. All rows are frozen, so a copy of the dicts is a copy of the model.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from reserve import errors
from reserve.errors import ReserveError, Shortfall
from reserve.idempotency import Response
from reserve.inventory.rows import Adjustment, Hold, HoldFilter, HoldState, Place, Pool, PoolFilter, PoolState
from reserve.inventory.transitions import Verb
from reserve.settings import Settings

#: What is stored: (fingerprint, response) by key.
Keys = dict[str, tuple[bytes, Response]]

_FINAL = {
    HoldState.CONFIRMED: errors.HoldConfirmed,
    HoldState.RELEASED: errors.HoldReleased,
    HoldState.EXPIRED: errors.HoldExpired,
}


@dataclass(frozen=True)
class PoolFigures:
    """A pool without what its holds say; `row` is how the service first answered it, for what cannot be foretold."""

    on_hand: int
    buffer: int
    ttl_seconds: int | None
    metadata: dict[str, object]
    state: PoolState
    version: int
    row: Pool


@dataclass
class Model:
    settings: Settings
    pools: dict[str, PoolFigures] = field(default_factory=dict)
    holds: dict[UUID, Hold] = field(default_factory=dict)
    keys: Keys = field(default_factory=dict)
    #: All that happened to `on_hand`, oldest first.
    adjustments: tuple[Adjustment, ...] = ()

    def copy(self) -> "Model":
        return Model(self.settings, dict(self.pools), dict(self.holds), dict(self.keys), self.adjustments)

    def digest(self) -> tuple[object, ...]:
        """Equal for models that will judge everything alike."""
        pools = frozenset(
            (key, each.on_hand, each.buffer, each.state, each.version) for key, each in self.pools.items()
        )
        holds = frozenset((each.id, each.state, each.version, each.expires_at) for each in self.holds.values())
        return (pools, holds, frozenset(self.keys))

    # --- figures --------------------------------------------------------------------------------------------

    def quantity(self, pool: str, state: HoldState) -> int:
        of_state = (hold for hold in self.holds.values() if hold.state is state)
        return sum(line.quantity for hold in of_state for line in hold.lines if line.pool == pool)

    def promised(self, pool: str) -> int:
        in_holds = self.quantity(pool, HoldState.HELD) + self.quantity(pool, HoldState.CONFIRMED)
        return in_holds + self.pools[pool].buffer

    def available(self, pool: str) -> int:
        return max(0, self.pools[pool].on_hand - self.promised(pool))

    def pool_as_read(self, pool: str, answer: Pool) -> Pool:
        """What `answer` must be; the time it was read at cannot be foretold."""
        known = self.pools[pool]
        return replace(
            known.row,
            state=known.state,
            on_hand=known.on_hand,
            available=self.available(pool),
            held=self.quantity(pool, HoldState.HELD),
            confirmed=self.quantity(pool, HoldState.CONFIRMED),
            buffer=known.buffer,
            hold_ttl_seconds=known.ttl_seconds,
            metadata=known.metadata,
            version=known.version,
            as_of=answer.as_of,
        )

    def pools_found(self, chosen: PoolFilter) -> list[str]:
        return sorted(
            key
            for key, pool in self.pools.items()
            if (not chosen.keys or key in chosen.keys)
            and key.startswith(chosen.prefix or "")
            and chosen.kind in {None, pool.row.kind}
            and chosen.state in {None, pool.state}
        )

    def holds_found(self, chosen: HoldFilter) -> list[Hold]:
        return sorted(
            (
                hold
                for hold in self.holds.values()
                if chosen.owner in {None, hold.owner}
                and chosen.reference in {None, hold.reference}
                and chosen.state in {None, hold.state}
                and chosen.pool in {None, *(line.pool for line in hold.lines)}
            ),
            key=lambda hold: hold.id,
            reverse=True,
        )

    def ttl(self, place: Place) -> timedelta:
        own = [ttl for line in place.lines if (ttl := self.pools[line.pool].ttl_seconds) is not None]
        return timedelta(seconds=place.ttl_seconds or min(own, default=self.settings.hold_ttl_seconds))

    # --- refusals: None where the wish must be granted ---------------------------------------------------------

    def refuse_place(self, place: Place) -> ReserveError | None:
        if unknown := [line.pool for line in place.lines if line.pool not in self.pools]:
            return errors.PoolNotFound(unknown)
        if closed := [line.pool for line in place.lines if self.pools[line.pool].state is not PoolState.OPEN]:
            return errors.PoolDraining(closed)
        shortfalls = [
            Shortfall(line.pool, line.quantity, available)
            for line in place.lines
            if (available := self.available(line.pool)) < line.quantity
        ]
        return errors.InsufficientStock(shortfalls) if shortfalls else None

    def refuse_change(self, verb: Verb, hold_id: UUID) -> ReserveError | None:
        """But for the lifetime cap, which depends on the moment."""
        if hold_id not in self.holds:
            return errors.HoldNotFound()
        state = self.holds[hold_id].state
        match verb:
            case Verb.CONFIRM:
                allowed = {HoldState.HELD, HoldState.CONFIRMED}
            case Verb.RELEASE:
                allowed = {HoldState.HELD, HoldState.RELEASED, HoldState.EXPIRED}
            case _:
                allowed = {HoldState.HELD}
        return None if state in allowed else _FINAL[state]("")

    def below_promised(self, pool: str) -> errors.BelowPromised:
        return errors.BelowPromised(
            "", on_hand=self.pools[pool].on_hand, available=self.available(pool), promised=self.promised(pool)
        )

    # --- time moved by data ------------------------------------------------------------------------------------

    def age(self, hold_ids: Iterable[UUID], by: timedelta, *, lapse: bool) -> None:
        """These holds were placed and expire earlier by `by`, after which they have lapsed, or not."""
        for hold_id in hold_ids:
            hold = self.holds[hold_id]
            times = {"created_at": hold.created_at - by, "expires_at": hold.expires_at - by}
            if lapse:
                times |= {"state": HoldState.EXPIRED, "finalized_at": times["expires_at"], "version": hold.version + 1}
            self.holds[hold_id] = replace(hold, **times)
