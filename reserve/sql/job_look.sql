-- Which of these lanes have a job to claim, for claims that wait.
select l.name
from unnest(%(lanes)s::text[]) as asked (lane)
cross join lateral (
  select
    own.id,
    own.name
  from {namespace}.lane own
  where own.name = asked.lane
    and not own.paused
  limit 1
) l
cross join lateral (
  select j.id
  from {namespace}.job j
  where j.lane_id = l.id
    and j.state = 'ready'
  order by
    j.lane_id,
    j.rank,
    j.run_at,
    j.id
  limit 1
) ready
order by l.name
