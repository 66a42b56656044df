-- A page of holds against their lines, and the lines against their slots and pools, in one snapshot.
-- Along the primary keys of hold and hold_line.
with chosen as materialized (
  select
    h.id,
    h.state,
    h.expires_at,
    h.finalized_at
  from {namespace}.hold h
  where h.id > %(after)s
    and h.id <= %(last)s
),
line as materialized (
  select
    l.hold_id,
    l.number,
    l.slot_id,
    l.pool_id,
    l.window_id,
    l.state,
    l.expires_at
  from {namespace}.hold_line l
  where l.hold_id > %(after)s
    and l.hold_id <= %(last)s
),
found as (
  select
    chosen.id as hold_id,
    null::bigint as pool_id,
    'lines' as what,
    '0' as stored,
    'at least 1' as recomputed
  from chosen
  where not exists (select from line where line.hold_id = chosen.id)
  union all
  select
    chosen.id,
    null,
    'finalized_at',
    coalesce(chosen.finalized_at::text, 'null'),
    case chosen.state
      when 'held' then 'null'
      when 'expired' then chosen.expires_at::text
      else 'at most ' || chosen.expires_at
    end
  from chosen
  where (chosen.state = 'held') <> (chosen.finalized_at is null)
    or chosen.finalized_at > chosen.expires_at
    or (chosen.state = 'expired' and chosen.finalized_at <> chosen.expires_at)
  union all
  select
    line.hold_id,
    line.pool_id,
    'hold_missing',
    'line ' || line.number,
    'no such hold'
  from line
  where not exists (select from chosen where chosen.id = line.hold_id)
  union all
  select
    line.hold_id,
    line.pool_id,
    'line_state',
    line.state,
    chosen.state
  from line
  join chosen
    on chosen.id = line.hold_id
  where line.state <> chosen.state
  union all
  select
    line.hold_id,
    line.pool_id,
    'line_expires_at',
    line.expires_at::text,
    chosen.expires_at::text
  from line
  join chosen
    on chosen.id = line.hold_id
  where line.expires_at <> chosen.expires_at
  union all
  select
    line.hold_id,
    line.pool_id,
    'line_slot',
    'slot id ' || line.slot_id,
    'no such slot of this pool and window'
  from line
  left join {namespace}.slot s
    on s.id = line.slot_id
    and s.pool_id = line.pool_id
    and s.window_id = line.window_id
  where s.id is null
  union all
  select
    line.hold_id,
    line.pool_id,
    'pool_missing',
    'line ' || line.number,
    'no such pool'
  from line
  left join {namespace}.pool p
    on p.id = line.pool_id
  where p.id is null
)
select
  (select count(*) from line) as rows_read,
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
