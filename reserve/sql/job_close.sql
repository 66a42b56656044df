-- Of jobs that the caller has locked; row counts are checked all the same.
with given as materialized (
  select
    asked.id,
    asked.token,
    asked.state,
    asked.error,
    asked.failures
  from unnest(
    %(ids)s::bigint[],
    %(tokens)s::bigint[],
    %(states)s::text[],
    %(errors)s::text[],
    %(failures)s::smallint[]
  ) as asked (id, token, state, error, failures)
),
gone as (
  delete from {namespace}.job t
  using given
  where t.id = any (%(ids)s::bigint[])
    and t.id = given.id
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.run_at, given.token, t.attempt, t.max_attempts, given.failures,
    t.rescues, t.unique_key, t.order_key, t.pool_id, coalesce(given.error, t.error) as error, t.progress, t.created_at,
    t.started_at, t.worker, given.state
)
insert into {namespace}.job_finished (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, output, created_at, started_at, finished_at, worker
)
select
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, null, created_at, started_at, {namespace}.clock(), worker
from gone
returning id
