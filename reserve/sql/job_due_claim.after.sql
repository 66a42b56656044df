insert into {namespace}.job (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
)
overriding system value
select
  id, lane_id, kind, payload, rank, run_at, 'ready', token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
from claimed
order by id
returning
  id,
  (
    select own.name
    from {namespace}.lane own
    where own.id = lane_id
  ) as lane
