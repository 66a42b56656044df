-- Pools and the rows that stand for their capacity. The word in braces is the namespace, filled in by `reserve migrate`.

create function {namespace}.clock() returns timestamptz
  language sql volatile parallel safe
  return clock_timestamp();
comment on function {namespace}.clock() is
  'The one clock. A namespace with a test clock replaces it by one that adds an offset; elsewhere the planner inlines it.';

create table {namespace}.pool (
  id bigint generated always as identity primary key,
  key text collate "C" not null check (char_length(key) between 1 and 200),
  kind text not null check (kind in ('stock', 'units', 'quota')),
  state text not null default 'open' check (state in ('open', 'draining', 'archived')),
  hold_ttl_seconds bigint check (hold_ttl_seconds between 1 and 31622400),
  max_per_owner bigint check (max_per_owner between 1 and 1000000000000),
  late_confirm text not null default 'refuse'
    check (late_confirm in ('refuse', 'if_available', 'if_available_any')),
  window_every text,
  window_time_zone text,
  quota_limit bigint check (quota_limit between 0 and 1000000000000),
  metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz not null,
  archived_at timestamptz,
  version bigint not null default 1 check (version >= 1),
  constraint pool_archived_at check ((state = 'archived') = (archived_at is not null)),
  constraint pool_window_whole check ((window_every is null) = (window_time_zone is null)),
  constraint pool_window_of_quota check (window_every is null or kind = 'quota'),
  constraint pool_limit_of_quota check ((quota_limit is not null) = (kind = 'quota'))
);
comment on column {namespace}.pool.key is 'Unique among pools that are not archived: archiving frees the key.';
comment on column {namespace}.pool.version is 'Raised by each change of settings, state or on_hand, not by holds.';

create unique index pool_key_live on {namespace}.pool (key) where state <> 'archived';
create index pool_key_archived on {namespace}.pool (key, id) where state = 'archived';

create table {namespace}.slot (
  id bigint generated always as identity primary key,
  pool_id bigint not null references {namespace}.pool (id),
  window_id bigint not null default 0 check (window_id >= 0),
  number smallint not null check (number >= 1),
  open boolean not null default true,
  short boolean not null default false,
  capacity bigint not null check (capacity >= 0),
  held bigint not null default 0 check (held >= 0),
  confirmed bigint not null default 0 check (confirmed >= 0),
  buffer bigint not null default 0 check (buffer >= 0),
  withheld bigint not null default 0 check (withheld >= 0),
  shortage bigint not null default 0 check (shortage >= 0),
  constraint slot_number unique (pool_id, window_id, number),
  constraint slot_never_oversold check (held + confirmed + buffer + withheld <= capacity + shortage),
  constraint slot_short check (shortage = 0 or short)
)
-- Room for some versions of a row on its own page: with no quantity in an index, updates stay HOT.
with (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
      autovacuum_vacuum_cost_delay = 0);
comment on table {namespace}.slot is 'A share of a stock or quota pool; the row that is claimed. Capacities sum to on_hand.';
comment on column {namespace}.slot.window_id is '0 for none, else the second at which the window starts.';
comment on column {namespace}.slot.open is
  'False on every slot of a pool that takes no new holds: a claim sees it under its row lock, so draining races with nothing.';
comment on column {namespace}.slot.short is
  'True on every slot of a window of which any slot has a shortage: no new holds, and give-backs pay the shortage first.';
