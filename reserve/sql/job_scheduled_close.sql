-- Of a job that the caller has locked.
with gone as (
  delete from {namespace}.job_scheduled t
  where t.id = %(id)s
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.run_at, t.token, t.attempt, t.max_attempts, t.failures, t.rescues,
    t.unique_key, t.order_key, t.pool_id, t.error, t.progress, t.created_at, t.started_at, t.worker
)
insert into {namespace}.job_finished (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, output, created_at, started_at, finished_at, worker
)
select
  id, lane_id, kind, payload, rank, run_at, %(state)s, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, coalesce(%(error)s, error), progress, null, created_at, started_at,
  {namespace}.clock(), worker
from gone
returning id
