-- What has become of jobs, and all jobs as clients see them.

create table {namespace}.job_finished (
  id bigint not null,
  lane_id bigint not null,
  kind text collate "C" not null,
  payload json not null,
  rank smallint not null,
  run_at timestamptz not null,
  state text not null check (state in ('succeeded', 'discarded', 'cancelled')),
  token bigint not null check (token >= 0),
  attempt smallint not null,
  max_attempts smallint not null,
  failures smallint not null,
  rescues smallint not null,
  unique_key text collate "C",
  order_key text collate "C",
  pool_id bigint,
  error text,
  progress json,
  output json,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  worker text,
  primary key (id, finished_at),
  constraint job_finished_output check (output is null or state = 'succeeded')
)
partition by range (finished_at);
comment on table {namespace}.job_finished is
  'Partitioned by the time of the end, so that old ones go by dropping a table. No foreign key to the lane: it would be '
  'looked at for each job that finishes.';

create table {namespace}.job_finished_rest partition of {namespace}.job_finished default;
comment on table {namespace}.job_finished_rest is 'What no partition of a day takes.';

create index job_finished_unsuccessful on {namespace}.job_finished (lane_id, state, id) where state <> 'succeeded';

create view {namespace}.job_as_read as
select
  j.id, j.lane_id, j.kind, j.payload, j.state, -j.rank as priority, j.attempt, j.max_attempts, j.failures, j.rescues,
  j.run_at, j.unique_key, j.order_key, j.pool_id, null::json as output, j.error, j.progress, j.cancel_requested,
  j.created_at, j.started_at, null::timestamptz as finished_at, j.token, j.lease_expires_at, j.worker
from {namespace}.job j
union all
select
  s.id, s.lane_id, s.kind, s.payload, 'scheduled', -s.rank, s.attempt, s.max_attempts, s.failures, s.rescues,
  s.run_at, s.unique_key, s.order_key, s.pool_id, null, s.error, s.progress, false,
  s.created_at, s.started_at, null, s.token, null, s.worker
from {namespace}.job_scheduled s
union all
select
  f.id, f.lane_id, f.kind, f.payload, f.state, -f.rank, f.attempt, f.max_attempts, f.failures, f.rescues,
  f.run_at, f.unique_key, f.order_key, f.pool_id, f.output, f.error, f.progress, false,
  f.created_at, f.started_at, f.finished_at, f.token, null, f.worker
from {namespace}.job_finished f;
comment on view {namespace}.job_as_read is 'Every job, wherever it is, as clients see it.';
