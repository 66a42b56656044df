-- Each pool is looked up on its own (`limit 1`): a join planned while the table is small would read all of them.
select
  p.id,
  p.key,
  p.state,
  p.hold_ttl_seconds,
  {namespace}.clock() as now,
  coalesce(
    (
      select sum(l.quantity)
      from {namespace}.hold_line l
      where l.pool_id = p.id
        and l.window_id = 0
        and l.state = 'held'
        and l.expires_at <= (select {namespace}.clock())
    ),
    0
  )::bigint as lapsed
from unnest(%(keys)s::text[]) as asked (key)
cross join lateral (
  select
    pool.id,
    pool.key,
    pool.state,
    pool.hold_ttl_seconds
  from {namespace}.pool
  where pool.key = asked.key
    and pool.state <> 'archived'
  limit 1
) p
order by p.id
