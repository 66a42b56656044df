"""The claim: take ready rows so that nobody else gets them. Declares each lane of work; runs nothing.

There is one statement shape (`reserve/sql/claim.sql`) and no second `skip locked` anywhere. A lane of work says
which table, what makes a row ready (literals only, so that a partial index serves it), the whole order of that
index, how many rows for each need, and what changes. Fewer rows than asked is a fact to interpret, not an error.

`<name>.after.sql` says what comes back; `<name>.before.sql`, where it exists, puts statements of its own ahead of the
claim, so that one round trip and one snapshot serve both.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One lane of work. The texts are SQL; `t` is the row being claimed, `need` what is asked, each key once."""

    name: str
    table: str
    need: str
    ready: str
    order: str
    changes: str
    returning: str
    carried: str
    limit: str = "1"


#: A slot for each pool of a batch of holds. Ready means that this one slot has the summed need, so a slot that has
#: too little is not even locked, and a refusal writes nothing. `open` and `short` are checked under the row lock.
HOLD_PLACE_CLAIM = Claim(
    name="hold_place_claim",
    table="slot",
    need="select wanted.pool_id, wanted.window_id, wanted.quantity from wanted where wanted.quantity > 0",
    ready=(
        "t.pool_id = need.pool_id and t.window_id = need.window_id and t.open and not t.short "
        "and t.capacity - t.held - t.confirmed - t.buffer - t.withheld >= need.quantity"
    ),
    order="t.pool_id, t.window_id, t.number",
    changes="held = t.held + picked.quantity",
    returning="t.id, t.pool_id, t.window_id",
    carried="need.quantity",
)

#: Lapsed holds, oldest first. The hold alone is claimed; its lines and slots follow in lock order.
HOLD_EXPIRE_CLAIM = Claim(
    name="hold_expire_claim",
    table="hold",
    need="select %(limit)s::bigint as wanted",
    ready="t.state = 'held' and t.expires_at <= (select {namespace}.clock())",
    order="t.expires_at, t.id",
    limit="need.wanted",
    changes="state = 'expired', finalized_at = t.expires_at, version = t.version + 1",
    returning="t.id, t.version",
    carried="need.wanted",
)

CLAIMS = (HOLD_PLACE_CLAIM, HOLD_EXPIRE_CLAIM)


def render_claim(shape: str, claim: Claim, *, before: str, after: str) -> str:
    """The statement of `claim`, still to be qualified for a namespace."""
    words = {
        "before": f"{before.rstrip(', ')},\n" if before else "",
        "need": claim.need,
        "carried": claim.carried,
        "table": claim.table,
        "ready": claim.ready,
        "order": claim.order,
        "limit": claim.limit,
        "changes": claim.changes,
        "returning": claim.returning,
        "after": after,
    }
    for word, text in words.items():
        shape = shape.replace(f"<{word}>", text)
    return shape
