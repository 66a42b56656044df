"""The model follows what the service answered: checks each answer against it, then makes the same change itself.

An answer that the model would not give is a `Disagreement`; the model is then of no more use.
"""

from dataclasses import replace
from datetime import timedelta

from reserve import errors
from reserve.errors import Contended, IdempotencyKeyReused, ReserveError
from reserve.idempotency import Done, Replay
from reserve.inventory.rows import Adjustment, Hold, HoldState, Pool, PoolKind, PoolState
from reserve.inventory.transitions import Verb
from reserve.ops.audit import AuditReport
from reserve.unset import UNSET
from tests.model.operations import (
    AdjustPool,
    Answer,
    Audit,
    ChangeHold,
    Keyed,
    Occupy,
    Operation,
    PlaceHold,
    Prune,
    PutPool,
    ReadHold,
    ReadPool,
    Record,
    SetPoolState,
    Sweep,
    Unknown,
    fingerprint_of,
)
from tests.model.stock import Model, PoolFigures


class Disagreement(AssertionError):
    """The service answered what the model would not."""


def follow(model: Model, record: Record, *, alone: bool = True) -> None:
    """Check the record's answer and change the model as it says. With `alone`, nothing else ran meanwhile."""
    if isinstance(record.answer, Contended):
        _follow_contended(model, record.operation, alone=alone)
    elif record.answer is not Unknown.LOST:
        _follow_answer(model, record, alone=alone)


def _follow_contended(model: Model, operation: Operation, *, alone: bool) -> None:
    if alone:
        raise Disagreement("answered contended, though nobody else is there")
    if isinstance(operation, PlaceHold) and operation.key in model.keys:
        raise Disagreement("answered contended, though the answer was stored when it came")


def _follow_answer(model: Model, record: Record, *, alone: bool) -> None:
    operation = record.operation
    match operation:
        case PlaceHold() | ChangeHold() | AdjustPool():
            _follow_keyed(model, operation, record)
        case PutPool():
            _follow_put(model, operation, record.answer, alone=alone)
        case ReadPool(pool):
            answer = record.answer
            if isinstance(answer, Pool) and pool in model.pools:
                _agree(answer, model.pool_as_read(pool, answer))
            else:
                _refused(answer, None if pool in model.pools else errors.PoolNotFound([pool]))
        case ReadHold(hold_id):
            _agree(told(record.answer), told(model.holds.get(hold_id, errors.HoldNotFound())))
        case SetPoolState(pool, state) if pool in model.pools:
            model.pools[pool] = replace(model.pools[pool], state=state)
        case Audit():
            _agree(isinstance(record.answer, AuditReport) and record.answer.clean, True)
        case SetPoolState() | Sweep() | Occupy() | Prune():
            """Nothing that anybody can read has changed."""
        case _:
            raise AssertionError(f"a call for many is followed by its parts: {operation}")


def _follow_keyed(model: Model, operation: Keyed, record: Record) -> None:
    answer = record.answer
    stored = None if operation.key is None else model.keys.get(operation.key)
    if stored is not None:
        fingerprint, response = stored
        if fingerprint == fingerprint_of(operation):
            _agree(answer, Replay(response))
        else:
            _refused(answer, IdempotencyKeyReused())
        return
    match operation:
        case PlaceHold():
            _follow_place(model, operation, record)
        case ChangeHold():
            _follow_change(model, operation, record)
        case AdjustPool():
            _follow_adjust(model, operation, record)
    if operation.key is not None and isinstance(answer, Done):
        model.keys[operation.key] = (fingerprint_of(operation), answer.response)


def _follow_place(model: Model, operation: PlaceHold, record: Record) -> None:
    place = operation.place
    hold = _granted(record.answer, model.refuse_place(place))
    if hold is None:
        return
    expected = Hold(
        id=hold.id,
        state=HoldState.HELD,
        lines=tuple(place.lines),
        owner=place.owner,
        reference=place.reference,
        metadata=place.metadata,
        created_at=hold.created_at,
        expires_at=hold.created_at + model.ttl(place),
        finalized_at=None,
        version=1,
    )
    _agree(hold, expected)
    _within(hold.created_at, record)
    _agree(hold.id in model.holds, False)
    model.holds[hold.id] = hold


def _follow_change(model: Model, operation: ChangeHold, record: Record) -> None:
    refusal = model.refuse_change(operation.verb, operation.hold_id)
    if refusal is None and operation.verb is Verb.EXTEND:
        refusal = _past_the_cap(model, operation, record)
    hold = _granted(record.answer, refusal)
    if hold is None:
        return
    before = model.holds[operation.hold_id]
    expected = before
    if operation.verb is Verb.EXTEND:
        # The later of its expiry and now plus the wish, and an effect only if that is later.
        wish = timedelta(seconds=operation.ttl_seconds)
        if hold.expires_at != before.expires_at:
            _within(hold.expires_at - wish, record)
            expected = replace(before, expires_at=hold.expires_at, version=before.version + 1)
        earliest = max(before.expires_at, record.span[0] + wish)
        _agree(hold.expires_at >= earliest, True)
    elif before.state is HoldState.HELD:
        state = HoldState.CONFIRMED if operation.verb is Verb.CONFIRM else HoldState.RELEASED
        _within(hold.finalized_at, record)
        expected = replace(before, state=state, finalized_at=hold.finalized_at, version=before.version + 1)
    _agree(hold, expected)
    model.holds[hold.id] = hold


def _past_the_cap(model: Model, operation: ChangeHold, record: Record) -> ReserveError | None:
    hold = model.holds[operation.hold_id]
    wish = timedelta(seconds=operation.ttl_seconds)
    latest = hold.created_at + timedelta(seconds=model.settings.hold_lifetime_seconds_max)
    first, last = (at + wish > max(latest, hold.expires_at) for at in record.span)
    refusal = errors.HoldLifetimeExceeded()
    if first == last:
        return refusal if first else None
    # The moment of the answer lies between, so either is right.
    return refusal if isinstance(record.answer, errors.HoldLifetimeExceeded) else None


def _follow_adjust(model: Model, operation: AdjustPool, record: Record) -> None:
    wish = operation.wish
    refusal: ReserveError | None = None
    if operation.pool not in model.pools:
        refusal = errors.PoolNotFound([operation.pool])
    else:
        before = model.pools[operation.pool].on_hand
        on_hand = before + wish.delta
        if wish.expected_on_hand not in {None, before}:
            refusal = errors.OnHandMismatch(before)
        elif wish.delta < 0 and on_hand < model.promised(operation.pool) and not wish.allow_shortage:
            refusal = model.below_promised(operation.pool)
        elif not 0 <= on_hand <= model.settings.quantity_max:
            refusal = errors.ValidationFailed([errors.Fault("/delta", "")])
    done = _granted(record.answer, refusal)
    if done is None:
        return
    pool = model.pools[operation.pool]
    expected = Adjustment(done.id, operation.pool, wish.delta, wish.reason, pool.on_hand + wish.delta, done.created_at)
    _agree(done, expected)
    _within(done.created_at, record)
    model.pools[operation.pool] = replace(pool, on_hand=done.on_hand, version=pool.version + 1)
    model.adjustments += (done,)


def _follow_put(model: Model, operation: PutPool, answer: Answer, *, alone: bool) -> None:
    change, key = operation.change, operation.pool
    refusal = _refuse_put(model, operation)
    if refusal is not None or not isinstance(answer, tuple):
        _refused(answer, refusal)
        return
    pool, created = answer
    _agree(created, key not in model.pools)
    before = model.pools.get(key) or PoolFigures(_or(change.on_hand, 0), 0, None, {}, PoolState.OPEN, 1, pool)
    after = replace(
        before,
        buffer=_or(change.buffer, before.buffer),
        ttl_seconds=_or(change.hold_ttl_seconds, before.ttl_seconds),
        metadata=dict(_or(change.metadata, before.metadata)),
    )
    if not created and after != before:
        after = replace(after, version=before.version + 1)
    model.pools[key] = after
    expected = model.pool_as_read(key, pool)
    if not alone:
        # Holds may come between the change and the commit: a put keeps nobody from placing unless it moves stock.
        expected = replace(expected, held=pool.held, confirmed=pool.confirmed, available=pool.available)
    _agree(pool, expected)


def _refuse_put(model: Model, operation: PutPool) -> ReserveError | None:
    change = operation.change
    pool = model.pools.get(operation.pool)
    if operation.if_match is not None and (pool is None or pool.version != operation.if_match):
        return errors.VersionMismatch()
    buffer = _or(change.buffer, 0 if pool is None else pool.buffer)
    if pool is None:
        on_hand = _or(change.on_hand, 0)
        short = buffer > on_hand
        return errors.BelowPromised("", on_hand=on_hand, available=on_hand, promised=0) if short else None
    if _or(change.kind, PoolKind.STOCK) is not PoolKind.STOCK:
        return errors.PoolKindFixed()
    if _or(change.on_hand, pool.on_hand) != pool.on_hand:
        return errors.ValidationFailed([errors.Fault("/on_hand", "")])
    if buffer - pool.buffer > model.available(operation.pool) and buffer > pool.buffer:
        return model.below_promised(operation.pool)
    return None


# --- what was answered against what is right -----------------------------------------------------------------------


def _granted(answer: Answer, refusal: ReserveError | None):
    """The value of what was done; None where it was rightly refused."""
    if isinstance(answer, Done) and refusal is None:
        return answer.value
    _refused(answer, refusal)
    return None


def _refused(answer: Answer, refusal: ReserveError | None) -> None:
    _agree(told(answer), told(refusal))


def told(answer: object) -> object:
    """An error as a client can tell it from others: its class and its data, not its sentence."""
    if isinstance(answer, errors.ValidationFailed):
        return (type(answer), [fault.pointer for fault in answer.faults])
    return (type(answer), vars(answer)) if isinstance(answer, ReserveError) else answer


def _agree(answer: object, expected: object) -> None:
    if answer != expected:
        raise Disagreement(f"answered {answer!r}\nexpected {expected!r}")


def _within(at: object, record: Record) -> None:
    first, last = record.span
    if at is None or not first <= at <= last:
        raise Disagreement(f"{at} is not between {first} and {last}")


def _or(value, otherwise):
    return otherwise if value is UNSET else value
