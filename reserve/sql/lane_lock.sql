select
  l.id,
  l.paused,
  l.lease_seconds,
  l.max_attempts,
  l.max_running,
  l.backoff_first_seconds,
  l.backoff_seconds_max,
  l.retention_days
from {namespace}.lane l
where l.name = %(name)s
for no key update
