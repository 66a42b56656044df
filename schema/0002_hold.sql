-- Holds and their lines.

create table {namespace}.hold (
  id uuid primary key,
  state text not null
    check (state in ('held', 'confirmed', 'released', 'expired', 'fulfilled', 'returned')),
  owner text collate "C" check (char_length(owner) between 1 and 200),
  reference text collate "C" check (char_length(reference) between 1 and 200),
  metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at),
  finalized_at timestamptz,
  version bigint not null default 1 check (version >= 1),
  constraint hold_finalized_at check ((state = 'held') = (finalized_at is null)),
  -- A hold that lapsed can only expire, never be confirmed or released.
  constraint hold_final_in_time check (finalized_at <= expires_at)
)
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on column {namespace}.hold.finalized_at is 'When it left the state held; for an expired hold its expires_at.';
comment on column {namespace}.hold.version is 'Raised by each effect, under the row lock: an effect happens once.';

create index hold_lapsed on {namespace}.hold (expires_at, id) where state = 'held';
create index hold_by_state on {namespace}.hold (state, id);
create index hold_by_owner on {namespace}.hold (owner, id) where owner is not null;
create index hold_by_reference on {namespace}.hold (reference, id) where reference is not null;

create table {namespace}.hold_line (
  hold_id uuid not null references {namespace}.hold (id),
  number smallint not null check (number >= 1),
  slot_id bigint not null,
  pool_id bigint not null,
  window_id bigint not null,
  quantity bigint not null check (quantity between 1 and 1000000000000),
  state text not null
    check (state in ('held', 'confirmed', 'released', 'expired', 'fulfilled', 'returned')),
  expires_at timestamptz not null,
  fulfilled bigint not null default 0 check (fulfilled >= 0),
  returned bigint not null default 0 check (returned >= 0),
  primary key (hold_id, number, slot_id),
  constraint hold_line_given_out check (fulfilled + returned <= quantity)
)
with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table {namespace}.hold_line is
  'One row for each slot that a line uses. No foreign key to pool or slot: concurrent inserts would queue up in '
  'multixacts on those hot rows; pools are archived, never deleted, and the audit looks for orphans.';
comment on column {namespace}.hold_line.state is
  'Copies of the hold''s state and expires_at, so that what is live or has lapsed in a pool is one short index range.';

create index hold_line_held on {namespace}.hold_line (pool_id, window_id, expires_at) where state = 'held';
create index hold_line_by_pool on {namespace}.hold_line (pool_id, hold_id);

create view {namespace}.hold_as_read as
select
  h.id,
  case when seen.lapsed then 'expired' else h.state end as state,
  h.owner,
  h.reference,
  h.metadata,
  h.created_at,
  h.expires_at,
  case when seen.lapsed then h.expires_at else h.finalized_at end as finalized_at,
  h.version + seen.lapsed::int as version,
  seen.lapsed as unswept,
  h.state as stored_state,
  lines.pools,
  lines.quantities
from {namespace}.hold h
cross join lateral (
  select h.state = 'held' and h.expires_at <= {namespace}.clock() as lapsed
  offset 0
) seen
cross join lateral (
  select
    coalesce(array_agg(line.pool order by line.number), array[]::text[]) as pools,
    coalesce(array_agg(line.quantity order by line.number), array[]::bigint[]) as quantities
  from (
    select
      l.number,
      p.key as pool,
      sum(l.quantity)::bigint as quantity
    from {namespace}.hold_line l
    join {namespace}.pool p
      on p.id = l.pool_id
    where l.hold_id = h.id
    group by
      l.number,
      p.key
  ) line
) lines;
comment on view {namespace}.hold_as_read is
  'A hold as clients see it: from the instant it lapses it reads expired, exactly as it will once it is swept.';

create view {namespace}.pool_as_read as
select
  p.id,
  p.key,
  p.kind,
  p.state,
  slots.on_hand,
  greatest(0, slots.free + lines.lapsed) as available,
  slots.held - lines.lapsed as held,
  slots.confirmed,
  slots.buffer,
  slots.withheld,
  p.hold_ttl_seconds,
  p.max_per_owner,
  p.late_confirm,
  p.window_every,
  p.window_time_zone,
  p.quota_limit,
  p.metadata,
  p.created_at,
  p.version,
  seen.as_of
from {namespace}.pool p
cross join lateral (
  select {namespace}.clock() as as_of
  offset 0
) seen
cross join lateral (
  select
    coalesce(sum(s.capacity), 0)::bigint as on_hand,
    coalesce(sum(s.capacity - s.held - s.confirmed - s.buffer - s.withheld), 0)::bigint as free,
    coalesce(sum(s.held), 0)::bigint as held,
    coalesce(sum(s.confirmed), 0)::bigint as confirmed,
    coalesce(sum(s.buffer), 0)::bigint as buffer,
    coalesce(sum(s.withheld), 0)::bigint as withheld
  from {namespace}.slot s
  where s.pool_id = p.id
    and s.window_id = 0
) slots
cross join lateral (
  select coalesce(sum(l.quantity), 0)::bigint as lapsed
  from {namespace}.hold_line l
  where l.pool_id = p.id
    and l.window_id = 0
    and l.state = 'held'
    and l.expires_at <= seen.as_of
) lines;
comment on view {namespace}.pool_as_read is
  'A pool with its quantities in one snapshot; what has lapsed counts as available, swept or not.';
