update {namespace}.lane
set
  paused = %(paused)s,
  lease_seconds = %(lease_seconds)s,
  max_attempts = %(max_attempts)s,
  max_running = %(max_running)s,
  backoff_first_seconds = %(backoff_first_seconds)s,
  backoff_seconds_max = %(backoff_seconds_max)s,
  retention_days = %(retention_days)s,
  version = version + 1
where id = %(id)s
