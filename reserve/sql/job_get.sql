select
  j.id, l.name as lane, j.kind, j.payload, j.state, j.priority, j.attempt, j.max_attempts, j.failures, j.rescues,
  j.run_at, j.unique_key, j.order_key, p.key as pool, j.output, j.error, j.progress, j.cancel_requested,
  j.created_at, j.started_at, j.finished_at, case when j.state = 'running' then j.token end as token,
  j.lease_expires_at, j.worker
from (
  select
    seen.id, seen.lane_id, seen.kind, seen.payload, seen.state, seen.priority, seen.attempt,
    seen.max_attempts, seen.failures, seen.rescues, seen.run_at, seen.unique_key, seen.order_key,
    seen.pool_id, seen.output, seen.error, seen.progress, seen.cancel_requested, seen.created_at,
    seen.started_at, seen.finished_at, seen.token, seen.lease_expires_at, seen.worker
  from {namespace}.job_as_read seen
  where seen.id = %(id)s
  limit 1
) j
cross join lateral (
  select own.name
  from {namespace}.lane own
  where own.id = j.lane_id
  limit 1
) l
left join lateral (
  select own.key
  from {namespace}.pool own
  where own.id = j.pool_id
  limit 1
) p
  on true
