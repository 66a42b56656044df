-- The slots are locked by this transaction already, so their update waits for nobody. Lines follow their holds, one
-- movement for each (hold, pool, window); the counts are checked by the caller.
with placed as (
  insert into {namespace}.hold (id, state, owner, reference, metadata, created_at, expires_at)
  select
    fresh.id,
    'held',
    fresh.owner,
    fresh.reference,
    fresh.metadata::jsonb,
    %(now)s,
    fresh.expires_at
  from unnest(
    %(ids)s::uuid[],
    %(owners)s::text[],
    %(references)s::text[],
    %(metadatas)s::text[],
    %(expires_ats)s::timestamptz[]
  ) as fresh (id, owner, reference, metadata, expires_at)
  returning id, expires_at, version
),
piece as materialized (
  select
    given.hold_id,
    given.number,
    given.slot_id,
    given.pool_id,
    given.window_id,
    given.quantity
  from unnest(
    %(line_holds)s::uuid[],
    %(line_numbers)s::bigint[],
    %(line_slots)s::bigint[],
    %(line_pools)s::bigint[],
    %(line_windows)s::bigint[],
    %(line_quantities)s::bigint[]
  ) as given (hold_id, number, slot_id, pool_id, window_id, quantity)
),
line as (
  insert into {namespace}.hold_line (
    hold_id,
    number,
    slot_id,
    pool_id,
    window_id,
    quantity,
    state,
    expires_at
  )
  select
    piece.hold_id,
    piece.number,
    piece.slot_id,
    piece.pool_id,
    piece.window_id,
    piece.quantity,
    'held',
    placed.expires_at
  from piece
  join placed
    on placed.id = piece.hold_id
  returning hold_id
),
movement as (
  insert into {namespace}.movement (at, pool_id, window_id, hold_id, hold_version, kind, quantity)
  select
    %(now)s,
    piece.pool_id,
    piece.window_id,
    piece.hold_id,
    placed.version,
    'placed',
    sum(piece.quantity)
  from piece
  join placed
    on placed.id = piece.hold_id
  group by
    piece.hold_id,
    placed.version,
    piece.pool_id,
    piece.window_id
  order by
    piece.hold_id,
    piece.pool_id,
    piece.window_id
  returning id
),
slot as (
  update {namespace}.slot s
  set held = s.held + change.quantity
  from unnest(%(slot_ids)s::bigint[], %(slot_changes)s::bigint[]) as change (slot_id, quantity)
  where s.id = any (%(slot_ids)s::bigint[])
    and s.id = change.slot_id
  returning s.id
)
select
  (select count(*) from placed) as holds,
  (select count(*) from line) as lines,
  (select count(*) from slot) as slots,
  (select count(*) from movement) as movements
