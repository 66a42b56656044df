-- Whoever still has the token, also after its lease lapsed, as long as nobody else has claimed the job. Fewer rows than
-- given means leases lost, or jobs that were finished before.
with given as materialized (
  select
    asked.id,
    asked.token,
    asked.output
  from unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(outputs)s::json[]) as asked (id, token, output)
),
gone as (
  delete from {namespace}.job t
  using given
  where t.id = any (%(ids)s::bigint[])
    and t.id = given.id
    and t.token = given.token
    and (t.state = 'running' or t.rescued)
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.run_at, t.token, t.attempt, t.max_attempts, t.failures, t.rescues,
    t.unique_key, t.order_key, t.pool_id, t.error, t.progress, t.created_at, t.started_at, t.worker, given.output
)
insert into {namespace}.job_finished (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, output, created_at, started_at, finished_at, worker
)
select
  id, lane_id, kind, payload, rank, run_at, 'succeeded', token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, null, progress, output, created_at, started_at, {namespace}.clock(), worker
from gone
returning id
