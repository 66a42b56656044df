-- Renews leases by id, each only for whoever has the token. A lapsed one that nobody else has claimed runs again.
-- No indexed column changes unless it had been rescued, so that renewals stay HOT. One that had starts anew for those
-- who look for lapsed leases, who have moved past the time of its claim.
with given as materialized (
  select
    asked.id,
    asked.token,
    asked.lease_seconds,
    asked.progress,
    asked.tells
  from unnest(
    %(ids)s::bigint[],
    %(tokens)s::bigint[],
    %(lease_seconds)s::double precision[],
    %(progresses)s::json[],
    %(tells)s::boolean[]
  ) as asked (id, token, lease_seconds, progress, tells)
  order by asked.id
),
held as materialized (
  select
    t.id,
    given.lease_seconds,
    given.progress,
    given.tells
  from given
  cross join lateral (
    select j.id
    from {namespace}.job j
    where j.id = given.id
      and j.token = given.token
      and (j.state = 'running' or j.rescued)
    for no key update
  ) t
)
update {namespace}.job t
set
  state = 'running',
  rescued = false,
  started_at = case when t.rescued then {namespace}.clock() else t.started_at end,
  lease_expires_at = {namespace}.clock() + make_interval(secs => held.lease_seconds),
  progress = case when held.tells then held.progress else t.progress end
from held
where t.id = any (array(select id from held))
  and t.id = held.id
returning
  t.id,
  t.token,
  t.lease_expires_at,
  t.cancel_requested
