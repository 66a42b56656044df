select
  id,
  token,
  kind,
  payload,
  rank,
  attempt,
  max_attempts,
  failures,
  rescues,
  run_at,
  created_at,
  started_at,
  lease_expires_at
from claimed
order by
  rank,
  run_at,
  id
