-- The rest of an effect, for holds locked and changed by this transaction: lines, then slots in their order, then one
-- movement for each (hold, pool, window). An extension moves the expiry only. The clock, last in the list, is read when
-- all locks are had, so that the caller sees a hold that has lapsed meanwhile.
with change as materialized (
  select
    given.hold_id,
    given.version,
    given.state,
    given.expires_at
  from unnest(
    %(ids)s::uuid[],
    %(versions)s::bigint[],
    %(states)s::text[],
    %(expires_ats)s::timestamptz[]
  ) as given (hold_id, version, state, expires_at)
),
line as (
  update {namespace}.hold_line l
  set
    state = change.state,
    expires_at = change.expires_at
  from change
  where l.hold_id = any (%(ids)s::uuid[])
    and l.hold_id = change.hold_id
  returning
    l.hold_id,
    change.version,
    l.slot_id,
    l.pool_id,
    l.window_id,
    l.quantity,
    l.state
),
share as materialized (
  select
    line.slot_id,
    sum(line.quantity)::bigint as quantity,
    coalesce(sum(line.quantity) filter (where line.state = 'confirmed'), 0)::bigint as confirmed
  from line
  where line.state <> 'held'
  group by line.slot_id
),
locked as materialized (
  select
    s.id,
    s.short
  from {namespace}.slot s
  where s.id = any (array(select share.slot_id from share))
  order by s.id
  for no key update
),
slot as (
  update {namespace}.slot s
  set
    held = s.held - share.quantity,
    confirmed = s.confirmed + share.confirmed
  from share
  where s.id = any (array(select locked.id from locked))
    and s.id = share.slot_id
  returning s.id
),
movement as (
  insert into {namespace}.movement (at, pool_id, window_id, hold_id, hold_version, kind, quantity)
  select
    {namespace}.clock(),
    line.pool_id,
    line.window_id,
    line.hold_id,
    line.version,
    line.state,
    sum(line.quantity)
  from line
  where line.state <> 'held'
  group by
    line.hold_id,
    line.version,
    line.state,
    line.pool_id,
    line.window_id
  order by
    line.hold_id,
    line.pool_id,
    line.window_id
  returning id
)
select
  (select count(distinct line.hold_id) from line) as holds,
  (select count(*) from share) as slots_wanted,
  (select count(*) from slot) as slots_changed,
  (
    select count(*)
    from locked
    join share
      on share.slot_id = locked.id
    where locked.short
      and share.quantity > share.confirmed
  ) as slots_short,
  (select count(*) from movement) as movements,
  {namespace}.clock() as now
