-- When the longest running job of each lane was claimed, along job_running; what comes before has long since ended,
-- but its entries stay in the index while anybody has an old snapshot.
select
  asked.lane,
  running.started_at,
  {namespace}.clock() as at
from unnest(%(lanes)s::text[], %(sinces)s::timestamptz[]) as asked (lane, since)
cross join lateral (
  select own.id
  from {namespace}.lane own
  where own.name = asked.lane
  limit 1
) l
cross join lateral (
  select j.started_at
  from {namespace}.job j
  where j.lane_id = l.id
    and j.state = 'running'
    and j.started_at >= asked.since
  order by
    j.lane_id,
    j.started_at,
    j.id
  limit 1
) running
order by asked.lane
