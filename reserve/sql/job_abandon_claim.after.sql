insert into {namespace}.job_finished (
  id, lane_id, kind, payload, rank, run_at, state, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, finished_at, worker
)
select
  id, lane_id, kind, payload, rank, run_at, case when cancel_requested then 'cancelled' else 'discarded' end,
  token, attempt, max_attempts, failures, rescues, unique_key, order_key, pool_id,
  case
    when cancel_requested then error
    else 'Its lease lapsed again after it was rescued ' || rescues || ' times.'
  end,
  progress, created_at, started_at, {namespace}.clock(), worker
from claimed
order by id
returning
  id,
  state
