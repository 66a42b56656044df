-- Rows of three kinds: stored answers, wanted pools, claimed slots. Only of a pool that was not claimed, what is free
-- and what has lapsed come back, from the same snapshot as the keys: that is what makes "insufficient" a fact. `not in`
-- is looked up in a hash; a join would compare each pool with each slot.
select
  stored.request,
  stored.fingerprint,
  stored.status,
  stored.location,
  stored.etag,
  stored.body,
  null::bigint as pool_id,
  null::text as pool,
  null::text as pool_state,
  null::bigint as hold_ttl_seconds,
  null::bigint as quantity,
  null::bigint as free,
  null::bigint as lapsed,
  null::bigint as slot_id,
  {namespace}.clock() as now
from stored
union all
select
  null,
  null,
  null,
  null,
  null,
  null,
  wanted.pool_id,
  wanted.key,
  wanted.state,
  wanted.hold_ttl_seconds,
  wanted.quantity,
  seen.free,
  seen.lapsed,
  null,
  {namespace}.clock()
from wanted
left join lateral (
  select
    (
      select coalesce(sum(s.capacity - s.held - s.confirmed - s.buffer - s.withheld), 0)::bigint
      from {namespace}.slot s
      where s.pool_id = wanted.pool_id
        and s.window_id = wanted.window_id
    ) as free,
    (
      select coalesce(sum(l.quantity), 0)::bigint
      from {namespace}.hold_line l
      where l.pool_id = wanted.pool_id
        and l.window_id = wanted.window_id
        and l.state = 'held'
        and l.expires_at <= (select {namespace}.clock())
    ) as lapsed
  where (wanted.pool_id, wanted.window_id) not in (
    select
      claimed.pool_id,
      claimed.window_id
    from claimed
  )
) seen
  on true
union all
select
  null,
  null,
  null,
  null,
  null,
  null,
  claimed.pool_id,
  null,
  null,
  null,
  null,
  null,
  null,
  claimed.id,
  {namespace}.clock()
from claimed
