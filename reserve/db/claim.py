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
    """One lane of work. The texts are SQL; `t` is the row being claimed, `need` what is asked, each key once.

    Without `changes` the claimed rows are deleted. `carried` is what each row's change has to know of its `need`;
    without it nothing is joined to the rows.
    """

    name: str
    table: str
    need: str
    ready: str
    order: str
    returning: str
    changes: str | None = None
    carried: str | None = None
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
)

#: Ready jobs of one lane: by priority, then run_at, then id. The walk starts past the last job that this claimer was
#: given (`after_…`), since entries of jobs that are gone stay in the index while anybody has an old snapshot; unless
#: there is a job of a higher priority. A claimer looks from the start now and then, and before it says *empty*.
JOB_CLAIM = Claim(
    name="job_claim",
    table="job",
    need="""select
    lane.id as lane_id,
    lane.lease_seconds,
    %(limit)s::bigint as wanted,
    {namespace}.clock() as at,
    case when lane.resumes then %(after_rank)s::smallint else (-32768)::smallint end as after_rank,
    case when lane.resumes then %(after_run_at)s::timestamptz else '-infinity'::timestamptz end as after_run_at,
    case when lane.resumes then %(after_id)s::bigint else 0 end as after_id
  from (
    select
      l.id,
      coalesce(%(lease_seconds)s::bigint, l.lease_seconds, %(lease_seconds_default)s::bigint) as lease_seconds,
      %(after_rank)s::smallint is not null
      and not exists (
        select
        from {namespace}.job urgent
        where urgent.lane_id = l.id
          and urgent.state = 'ready'
          and urgent.rank < %(after_rank)s::smallint
      ) as resumes
    from {namespace}.lane l
    where l.name = %(lane)s
      and not l.paused
    offset 0
  ) lane""",
    ready=(
        "t.lane_id = need.lane_id and t.state = 'ready' "
        "and (t.rank, t.run_at, t.id) > (need.after_rank, need.after_run_at, need.after_id)"
    ),
    order="t.lane_id, t.rank, t.run_at, t.id",
    limit="need.wanted",
    changes=(
        "state = 'running', rescued = false, token = t.token + 1, attempt = t.failures + 1, worker = %(worker)s, "
        "started_at = (select at from need), "
        "lease_expires_at = (select at + make_interval(secs => lease_seconds) from need)"
    ),
    returning=(
        "t.id, t.token, t.kind, t.payload, t.rank, t.attempt, t.max_attempts, t.failures, t.rescues, t.run_at, "
        "t.created_at, t.started_at, t.lease_expires_at"
    ),
)

_LANES = """select
    l.id as lane_id,
    %(limit)s::bigint as wanted
  from {namespace}.lane l
  where l.name = any (%(lanes)s::text[])"""

#: Every column of a job that has one of these tables behind it, as it moves to another.
_MOVED = (
    "t.id, t.lane_id, t.kind, t.payload, t.rank, t.run_at, t.token, t.attempt, t.max_attempts, t.failures, t.rescues, "
    "t.unique_key, t.order_key, t.pool_id, t.error, t.progress, t.created_at, t.started_at, t.worker"
)

#: Scheduled jobs whose time has come, of each of some lanes the first; they move to the ready ones.
JOB_DUE_CLAIM = Claim(
    name="job_due_claim",
    table="job_scheduled",
    need=_LANES,
    ready="t.lane_id = need.lane_id and t.run_at <= (select {namespace}.clock())",
    order="t.lane_id, t.run_at, t.id",
    limit="need.wanted",
    returning=_MOVED,
)

_LAPSED = (
    "t.lane_id = need.lane_id and t.state = 'running' and t.started_at >= need.since "
    "and t.lease_expires_at <= (select {namespace}.clock())"
)

_LANES_SINCE = """select
    l.id as lane_id,
    asked.since,
    %(limit)s::bigint as wanted
  from unnest(%(lanes)s::text[], %(sinces)s::timestamptz[]) as asked (lane, since)
  cross join lateral (
    select own.id
    from {namespace}.lane own
    where own.name = asked.lane
    limit 1
  ) l"""

#: Running jobs whose lease has lapsed: ready again, where they were in the order. Their last holder still counts
#: until somebody else has claimed them.
JOB_RESCUE_CLAIM = Claim(
    name="job_rescue_claim",
    table="job",
    need=_LANES_SINCE,
    ready=f"{_LAPSED} and not t.cancel_requested and t.rescues < %(rescues_max)s",
    order="t.lane_id, t.started_at, t.id",
    limit="need.wanted",
    changes="state = 'ready', rescued = true, rescues = t.rescues + 1, lease_expires_at = null",
    returning="t.id",
)

#: Running jobs whose lease has lapsed and that nobody shall run again: cancelled meanwhile, or rescued too often.
JOB_ABANDON_CLAIM = Claim(
    name="job_abandon_claim",
    table="job",
    need=_LANES_SINCE,
    ready=f"{_LAPSED} and (t.cancel_requested or t.rescues >= %(rescues_max)s)",
    order="t.lane_id, t.started_at, t.id",
    limit="need.wanted",
    returning=f"{_MOVED}, t.cancel_requested",
)

CLAIMS = (HOLD_PLACE_CLAIM, HOLD_EXPIRE_CLAIM, JOB_CLAIM, JOB_DUE_CLAIM, JOB_RESCUE_CLAIM, JOB_ABANDON_CLAIM)


def render_claim(shape: str, claim: Claim, *, before: str, after: str) -> str:
    """The statement of `claim`, still to be qualified for a namespace."""
    words = {
        "before": f"{before.rstrip(', ')},\n" if before else "",
        "need": claim.need,
        "carried": f",\n    {claim.carried}" if claim.carried else "",
        "table": claim.table,
        "ready": claim.ready,
        "order": claim.order,
        "limit": claim.limit,
        "change": _change(claim),
        "returning": claim.returning,
        "after": after,
    }
    for word, text in words.items():
        shape = shape.replace(f"<{word}>", text)
    return shape


def _change(claim: Claim) -> str:
    """What happens to the rows that were picked."""
    chosen = "where t.id = any (array(select id from picked))"
    if claim.changes is None:
        return f"delete from {{namespace}}.{claim.table} t\n  {chosen}"  # noqa: S608 -- of constants
    joined = ("from picked\n  ", "\n    and t.id = picked.id") if claim.carried else ("", "")
    rows = f"{joined[0]}{chosen}{joined[1]}"
    return f"update {{namespace}}.{claim.table} t\n  set {claim.changes}\n  {rows}"  # noqa: S608 -- of constants
