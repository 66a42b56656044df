-- Live jobs that are ready or running, by id, so that two who lock several never wait for each other in a ring.
select
  t.id,
  t.state,
  t.rescued,
  t.token,
  t.max_attempts,
  t.failures,
  t.cancel_requested,
  l.backoff_first_seconds,
  l.backoff_seconds_max
from (
  select distinct asked.id
  from unnest(%(ids)s::bigint[]) as asked (id)
  order by asked.id
) given
cross join lateral (
  select
    j.id,
    j.lane_id,
    j.state,
    j.rescued,
    j.token,
    j.max_attempts,
    j.failures,
    j.cancel_requested
  from {namespace}.job j
  where j.id = given.id
  for no key update
) t
cross join lateral (
  select
    own.backoff_first_seconds,
    own.backoff_seconds_max
  from {namespace}.lane own
  where own.id = t.lane_id
  limit 1
) l
order by t.id
