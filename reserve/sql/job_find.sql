-- Newest first, live and finished as one: each part is read along its primary key, and their rows merged.
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
  where seen.id < %(before)s
    and (%(lane_id)s::bigint is null or seen.lane_id = %(lane_id)s::bigint)
    and (%(state)s::text is null or seen.state = %(state)s::text)
    and (%(kind)s::text is null or seen.kind = %(kind)s::text)
  order by seen.id desc
  limit %(limit)s
) j
join {namespace}.lane l
  on l.id = j.lane_id
left join {namespace}.pool p
  on p.id = j.pool_id
order by j.id desc
