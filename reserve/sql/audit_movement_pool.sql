-- Pools that movements name, each once, found by leaps along movement_by_pool; `known` says whether there is such a pool.
with recursive leap (pool_id) as (
  (
    select m.pool_id
    from {namespace}.movement m
    where m.pool_id > %(after)s
    order by m.pool_id
    limit 1
  )
  union all
  select (
    select m.pool_id
    from {namespace}.movement m
    where m.pool_id > leap.pool_id
    order by m.pool_id
    limit 1
  )
  from leap
  where leap.pool_id is not null
),
named as (
  select leap.pool_id
  from leap
  where leap.pool_id <= %(last)s
  limit %(limit)s
)
select
  named.pool_id,
  p.id is not null as known
from named
left join {namespace}.pool p
  on p.id = named.pool_id
order by named.pool_id
