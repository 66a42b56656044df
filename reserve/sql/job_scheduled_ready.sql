-- Of a job that the caller has locked: its time has come, by somebody's wish.
with gone as (
  delete from {namespace}.job_scheduled t
  where t.id = %(id)s
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.token, t.attempt, t.max_attempts, t.failures, t.rescues,
    t.unique_key, t.order_key, t.pool_id, t.error, t.progress, t.created_at, t.started_at, t.worker
)
insert into {namespace}.job (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
)
overriding system value
select
  id, lane_id, kind, payload, rank, {namespace}.clock(), 'ready', token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
from gone
returning id
