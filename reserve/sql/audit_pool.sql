-- All figures of some pools as stored, one row for each slot, and as their movements have them, one row (without slot)
-- for each window: in one statement, so in one snapshot, and right on a live system.
-- Along movement_by_pool and hold_line_by_pool.
with chosen as materialized (
  select
    p.id,
    p.key,
    p.kind
  from {namespace}.pool p
  where p.id > %(after)s
    and p.id <= %(last)s
  order by p.id
  limit %(limit)s
),
effect as materialized (
  select
    given.kind,
    given.on_hand,
    given.buffer,
    given.withheld,
    given.held,
    given.confirmed
  from unnest(
    %(kinds)s::text[],
    %(on_hand_effects)s::bigint[],
    %(buffer_effects)s::bigint[],
    %(withheld_effects)s::bigint[],
    %(held_effects)s::bigint[],
    %(confirmed_effects)s::bigint[]
  ) as given (kind, on_hand, buffer, withheld, held, confirmed)
),
moved as (
  select
    m.pool_id,
    m.window_id,
    m.kind,
    sum(m.quantity) as quantity,
    count(*) as movements
  from {namespace}.movement m
  where m.pool_id = any (array(select chosen.id from chosen))
  group by
    m.pool_id,
    m.window_id,
    m.kind
),
line as (
  select
    l.slot_id,
    coalesce(sum(l.quantity) filter (where l.state = 'held'), 0) as held,
    coalesce(sum(l.quantity - l.fulfilled - l.returned) filter (where l.state = 'confirmed'), 0) as confirmed
  from {namespace}.hold_line l
  where l.pool_id = any (array(select chosen.id from chosen))
  group by l.slot_id
),
figure as (
  select
    s.pool_id,
    s.window_id,
    s.number as slot,
    s.capacity as on_hand,
    s.buffer,
    s.withheld,
    s.held,
    s.confirmed,
    s.shortage,
    s.short,
    coalesce(line.held, 0) as held_by_lines,
    coalesce(line.confirmed, 0) as confirmed_by_lines,
    0 as movements
  from {namespace}.slot s
  left join line
    on line.slot_id = s.id
  where s.pool_id = any (array(select chosen.id from chosen))
  union all
  select
    moved.pool_id,
    moved.window_id,
    null,
    sum(moved.quantity * effect.on_hand),
    sum(moved.quantity * effect.buffer),
    sum(moved.quantity * effect.withheld),
    sum(moved.quantity * effect.held),
    sum(moved.quantity * effect.confirmed),
    0,
    false,
    0,
    0,
    sum(moved.movements)
  from moved
  join effect
    on effect.kind = moved.kind
  group by
    moved.pool_id,
    moved.window_id
)
select
  chosen.id as pool_id,
  chosen.key as pool,
  chosen.kind,
  figure.window_id,
  figure.slot,
  figure.on_hand,
  figure.buffer,
  figure.withheld,
  figure.held,
  figure.confirmed,
  figure.shortage,
  figure.short,
  figure.held_by_lines,
  figure.confirmed_by_lines,
  figure.movements
from chosen
left join figure
  on figure.pool_id = chosen.id
order by
  chosen.id,
  figure.window_id,
  figure.slot nulls first
