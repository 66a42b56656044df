-- Finished jobs that did not succeed, ready again as if new, but for their last error. The token is raised, so that
-- whoever finished them before and says it again has lost them. The states are a parameter, so that jobs are found by
-- their ids: with literals a planner may read all of job_finished_unsuccessful.
with gone as (
  delete from {namespace}.job_finished t
  where t.id = any (%(ids)s::bigint[])
    and t.state = any (%(states)s::text[])
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.token, t.attempt, t.max_attempts,
    t.unique_key, t.order_key, t.pool_id, t.error, t.progress, t.created_at, t.started_at, t.worker
)
insert into {namespace}.job (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
)
overriding system value
select
  id, lane_id, kind, payload, rank, {namespace}.clock(), 'ready', token + 1, 0, max_attempts,
  unique_key, order_key, pool_id, error, null, created_at, null, null
from gone
order by id
returning id
