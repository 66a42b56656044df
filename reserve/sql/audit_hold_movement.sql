-- A page of holds and their lines against their movements, per hold, pool and window, in one snapshot.
-- Along the primary keys of hold and hold_line, and movement_once.
with chosen as materialized (
  select
    h.id,
    h.state,
    h.expires_at,
    h.version,
    -- What its movements must end in: what becomes of a confirmed hold later keeps its confirmation.
    case when h.state in ('fulfilled', 'returned') then 'confirmed' else h.state end as decided
  from {namespace}.hold h
  where h.id > %(after)s
    and h.id <= %(last)s
),
line as (
  select
    l.hold_id,
    l.pool_id,
    l.window_id,
    sum(l.quantity) as quantity,
    coalesce(sum(l.quantity) filter (where l.state = 'held'), 0) as held,
    coalesce(sum(l.quantity - l.fulfilled - l.returned) filter (where l.state = 'confirmed'), 0) as confirmed
  from {namespace}.hold_line l
  where l.hold_id > %(after)s
    and l.hold_id <= %(last)s
  group by
    l.hold_id,
    l.pool_id,
    l.window_id
),
movement as (
  select
    m.hold_id,
    m.pool_id,
    m.window_id,
    count(*) as movements,
    sum(m.quantity * effect.held) as held,
    sum(m.quantity * effect.confirmed) as confirmed,
    max(m.hold_version) as version,
    min(m.at) filter (where m.kind = 'expired') as expired_at,
    string_agg(m.quantity::text, ' + ' order by m.id) filter (where m.kind = 'placed') as placed,
    string_agg(m.kind, ' and ' order by m.id) filter (where m.kind in ('confirmed', 'released', 'expired')) as decided
  from {namespace}.movement m
  join unnest(%(kinds)s::text[], %(held_effects)s::bigint[], %(confirmed_effects)s::bigint[])
    as effect (kind, held, confirmed)
    on effect.kind = m.kind
  where m.hold_id > %(after)s
    and m.hold_id <= %(last)s
  group by
    m.hold_id,
    m.pool_id,
    m.window_id
),
part as materialized (
  select
    hold_id,
    pool_id,
    chosen.id is not null as known,
    chosen.state,
    chosen.version,
    chosen.expires_at,
    chosen.decided,
    coalesce(line.quantity::text, 'no line') as line_quantity,
    coalesce(line.held, 0) as line_held,
    coalesce(line.confirmed, 0) as line_confirmed,
    coalesce(movement.movements, 0) as movements,
    coalesce(movement.held, 0) as movement_held,
    coalesce(movement.confirmed, 0) as movement_confirmed,
    coalesce(movement.version, 0) as movement_version,
    coalesce(movement.placed, 'no movement') as movement_placed,
    coalesce(movement.decided, 'held') as movement_decided,
    movement.expired_at as movement_expired_at
  from line
  full join movement
    using (hold_id, pool_id, window_id)
  left join chosen
    on chosen.id = hold_id
),
found as (
  select
    part.hold_id,
    part.pool_id,
    'hold_missing' as what,
    part.movements || ' movements' as stored,
    'no such hold' as recomputed
  from part
  where not part.known
    and part.movements > 0
  union all
  select
    part.hold_id,
    part.pool_id,
    'placed',
    part.line_quantity,
    part.movement_placed
  from part
  where part.line_quantity <> part.movement_placed
  union all
  select
    part.hold_id,
    part.pool_id,
    'hold_held',
    part.line_held::text,
    part.movement_held::text
  from part
  where part.line_held <> part.movement_held
  union all
  select
    part.hold_id,
    part.pool_id,
    'hold_confirmed',
    part.line_confirmed::text,
    part.movement_confirmed::text
  from part
  where part.line_confirmed <> part.movement_confirmed
  union all
  select
    part.hold_id,
    part.pool_id,
    'hold_state',
    part.state,
    part.movement_decided
  from part
  where part.decided <> part.movement_decided
  union all
  select
    part.hold_id,
    part.pool_id,
    'hold_version',
    part.version::text,
    part.movement_version::text
  from part
  where part.movement_version > part.version
    -- Nothing can follow these two; an extension, which moves no quantity, can only precede them.
    or (part.state in ('released', 'expired') and part.movement_version <> part.version)
  union all
  select
    part.hold_id,
    part.pool_id,
    'expired_early',
    part.movement_expired_at::text,
    'at least ' || part.expires_at
  from part
  where part.movement_expired_at < part.expires_at
)
select
  (select coalesce(sum(part.movements), 0) from part)::bigint as rows_read,
  (select count(*) from found) as found_count,
  shown.hold_id,
  shown.pool_id,
  p.key as pool,
  shown.what,
  shown.stored,
  shown.recomputed
from (select 1) as always
left join (
  select
    found.hold_id,
    found.pool_id,
    found.what,
    found.stored,
    found.recomputed
  from found
  order by
    found.hold_id,
    found.pool_id,
    found.what,
    found.stored
  limit %(differences_max)s
) shown
  on true
left join {namespace}.pool p
  on p.id = shown.pool_id
order by
  shown.hold_id,
  shown.pool_id,
  shown.what,
  shown.stored
