-- Lanes and their jobs. Ready and running jobs only are in `job`; scheduled ones wait apart, finished ones have a table
-- of their own (0006), so that what a claim walks grows with neither.

create table {namespace}.lane (
  id bigint generated always as identity primary key,
  name text collate "C" not null unique check (char_length(name) between 1 and 200),
  paused boolean not null default false,
  lease_seconds bigint check (lease_seconds between 1 and 86400),
  max_attempts smallint check (max_attempts between 1 and 100),
  max_running bigint check (max_running between 1 and 1000000),
  backoff_first_seconds double precision check (backoff_first_seconds between 0 and 2678400),
  backoff_seconds_max double precision check (backoff_seconds_max between 0 and 2678400),
  retention_days bigint check (retention_days between 1 and 36600),
  created_at timestamptz not null,
  version bigint not null default 1 check (version >= 1),
  constraint lane_backoff_whole check ((backoff_first_seconds is null) = (backoff_seconds_max is null)),
  constraint lane_backoff_order check (backoff_first_seconds <= backoff_seconds_max)
);
comment on table {namespace}.lane is 'A named queue. What is null is as the settings of the service say.';

create table {namespace}.job (
  id bigint generated always as identity primary key,
  lane_id bigint not null references {namespace}.lane (id),
  kind text collate "C" not null check (char_length(kind) between 1 and 200),
  payload json not null,
  rank smallint not null check (rank between -32767 and 32767),
  run_at timestamptz not null,
  state text not null check (state in ('ready', 'running')),
  rescued boolean not null default false,
  token bigint not null default 0 check (token >= 0),
  attempt smallint not null default 0 check (attempt >= 0),
  max_attempts smallint not null check (max_attempts between 1 and 100),
  failures smallint not null default 0 check (failures between 0 and 100),
  rescues smallint not null default 0 check (rescues >= 0),
  cancel_requested boolean not null default false,
  unique_key text collate "C" check (char_length(unique_key) between 1 and 200),
  order_key text collate "C" check (char_length(order_key) between 1 and 200),
  pool_id bigint,
  error text,
  progress json,
  created_at timestamptz not null,
  started_at timestamptz,
  lease_expires_at timestamptz,
  worker text check (char_length(worker) between 1 and 200),
  constraint job_leased check ((state = 'running') = (lease_expires_at is not null)),
  constraint job_held check (state = 'ready' or (started_at is not null and worker is not null and token > 0)),
  constraint job_rescued_is_ready check (not rescued or state = 'ready'),
  constraint job_cancel_of_running check (not cancel_requested or state = 'running'),
  constraint job_failures_left check (failures < max_attempts)
)
-- Renewals of a lease change no indexed column, so with room on the page they stay HOT.
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0);
comment on column {namespace}.job.id is 'Drawn when it was enqueued, and its own for ever: it moves between the tables.';
comment on column {namespace}.job.rank is 'The priority, negated, so that the claim walks its index one way.';
comment on column {namespace}.job.rescued is
  'Its lease lapsed and it is ready again; until somebody else claims it, its last holder may still finish or extend it.';
comment on column {namespace}.job.token is 'Raised by each claim, never lowered: whoever has another one is not the holder.';
comment on column {namespace}.job.lease_expires_at is 'In no index: running jobs are few, and are looked at by started_at.';

create index job_ready on {namespace}.job (lane_id, rank, run_at, id) where state = 'ready';
-- By the time of the claim, so that a look for lapsed leases need not walk what others have finished long since.
create index job_running on {namespace}.job (lane_id, started_at, id) where state = 'running';

create table {namespace}.job_scheduled (
  id bigint primary key,
  lane_id bigint not null references {namespace}.lane (id),
  kind text collate "C" not null check (char_length(kind) between 1 and 200),
  payload json not null,
  rank smallint not null check (rank between -32767 and 32767),
  run_at timestamptz not null,
  token bigint not null default 0 check (token >= 0),
  attempt smallint not null default 0 check (attempt >= 0),
  max_attempts smallint not null check (max_attempts between 1 and 100),
  failures smallint not null default 0 check (failures between 0 and 100),
  rescues smallint not null default 0 check (rescues >= 0),
  unique_key text collate "C" check (char_length(unique_key) between 1 and 200),
  order_key text collate "C" check (char_length(order_key) between 1 and 200),
  pool_id bigint,
  error text,
  progress json,
  created_at timestamptz not null,
  started_at timestamptz,
  worker text check (char_length(worker) between 1 and 200),
  constraint job_scheduled_failures_left check (failures < max_attempts)
)
with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
comment on table {namespace}.job_scheduled is 'Jobs whose time has not come: a later run_at, or the pause after a failure.';

create index job_due on {namespace}.job_scheduled (lane_id, run_at, id);
