-- Of jobs that the caller has locked: they wait for a later time, apart.
with given as materialized (
  select
    asked.id,
    asked.error,
    asked.failures,
    asked.delay_seconds
  from unnest(
    %(ids)s::bigint[],
    %(errors)s::text[],
    %(failures)s::smallint[],
    %(delays)s::double precision[]
  ) as asked (id, error, failures, delay_seconds)
),
gone as (
  delete from {namespace}.job t
  using given
  where t.id = any (%(ids)s::bigint[])
    and t.id = given.id
  returning
    t.id, t.lane_id, t.kind, t.payload, t.rank, t.token, t.attempt, t.max_attempts, given.failures, t.rescues,
    t.unique_key, t.order_key, t.pool_id, coalesce(given.error, t.error) as error, t.progress, t.created_at,
    t.started_at, t.worker, given.delay_seconds
)
insert into {namespace}.job_scheduled (
  id, lane_id, kind, payload, rank, run_at, token, attempt, max_attempts, failures, rescues,
  unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
)
select
  id, lane_id, kind, payload, rank, {namespace}.clock() + make_interval(secs => delay_seconds), token, attempt,
  max_attempts, failures, rescues, unique_key, order_key, pool_id, error, progress, created_at, started_at, worker
from gone
returning
  id,
  run_at
