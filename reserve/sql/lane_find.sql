-- Figures are counted along the index of each, up to a bound: a look at a long backlog must not take long. The oldest
-- ready job is the oldest of the first of each priority, which are stepped through.
select
  l.name,
  l.paused,
  l.lease_seconds,
  l.max_attempts,
  l.max_running,
  l.backoff_first_seconds,
  l.backoff_seconds_max,
  l.retention_days,
  ready.number as ready,
  scheduled.number as scheduled,
  running.number as running,
  discarded.number as discarded,
  extract(epoch from now.at - oldest.run_at)::double precision as oldest_ready_age_seconds,
  l.created_at,
  l.version
from {namespace}.lane l
cross join (select {namespace}.clock() as at) now
cross join lateral (
  select count(*) as number
  from (
    select j.id
    from {namespace}.job j
    where j.lane_id = l.id
      and j.state = 'ready'
    order by
      j.lane_id,
      j.rank,
      j.run_at,
      j.id
    limit %(count_max)s
  ) counted
) ready
cross join lateral (
  select count(*) as number
  from (
    select j.id
    from {namespace}.job_scheduled j
    where j.lane_id = l.id
    order by
      j.lane_id,
      j.run_at,
      j.id
    limit %(count_max)s
  ) counted
) scheduled
cross join lateral (
  select count(*) as number
  from (
    select j.id
    from {namespace}.job j
    where j.lane_id = l.id
      and j.state = 'running'
    order by
      j.lane_id,
      j.started_at,
      j.id
    limit %(count_max)s
  ) counted
) running
cross join lateral (
  select count(*) as number
  from (
    select j.id
    from {namespace}.job_finished j
    where j.lane_id = l.id
      and j.state = 'discarded'
      and j.state <> 'succeeded'
    order by
      j.lane_id,
      j.state,
      j.id
    limit %(count_max)s
  ) counted
) discarded
cross join lateral (
  with recursive first as (
    (
      select
        j.rank,
        j.run_at
      from {namespace}.job j
      where j.lane_id = l.id
        and j.state = 'ready'
      order by
        j.rank,
        j.run_at,
        j.id
      limit 1
    )
    union all
    select
      next.rank,
      next.run_at
    from first
    cross join lateral (
      select
        j.rank,
        j.run_at
      from {namespace}.job j
      where j.lane_id = l.id
        and j.state = 'ready'
        and j.rank > first.rank
      order by
        j.rank,
        j.run_at,
        j.id
      limit 1
    ) next
  )
  select min(first.run_at) as run_at
  from first
) oldest
where l.name > %(after)s
  and (%(name)s::text is null or l.name = %(name)s::text)
order by l.name
limit %(limit)s
