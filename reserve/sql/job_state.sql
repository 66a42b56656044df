-- Where jobs are and what they are, all in one snapshot: for whoever found them no longer where they were.
select
  j.id,
  j.state,
  j.token,
  j.run_at,
  j.failures
from unnest(%(ids)s::bigint[]) as asked (id)
cross join lateral (
  select
    seen.id,
    seen.state,
    seen.token,
    seen.run_at,
    seen.failures
  from {namespace}.job_as_read seen
  where seen.id = asked.id
  limit 1
) j
order by j.id
