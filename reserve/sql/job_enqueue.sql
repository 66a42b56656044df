-- Ids are drawn in the order of the jobs given, before the rows part: what is due is ready, the rest waits apart.
-- A lane that is not there yet answers no row for its jobs, and with `whole` nothing is written then. `told` are the
-- lanes to notify of.
with missing as materialized (
  select asked.lane
  from unnest(%(lanes)s::text[]) as asked (lane)
  where %(whole)s
    and (
      select own.id
      from {namespace}.lane own
      where own.name = asked.lane
      limit 1
    ) is null
  limit 1
),
given as materialized (
  select
    nextval('{namespace}.job_id_seq') as id,
    wish.number,
    wish.kind,
    wish.payload,
    wish.rank,
    wish.lane_id,
    wish.max_attempts,
    wish.at,
    greatest(wish.at, wish.run_at) as run_at
  from (
    select
      asked.number,
      asked.kind,
      asked.payload,
      asked.rank,
      l.id as lane_id,
      coalesce(asked.max_attempts, l.max_attempts, %(max_attempts_default)s::smallint) as max_attempts,
      now.at,
      coalesce(asked.run_at, now.at + make_interval(secs => asked.delay_seconds)) as run_at
    from unnest(
      %(lanes)s::text[],
      %(kinds)s::text[],
      %(payloads)s::json[],
      %(ranks)s::smallint[],
      %(run_ats)s::timestamptz[],
      %(delays)s::double precision[],
      %(max_attempts)s::smallint[]
    ) with ordinality as asked (lane, kind, payload, rank, run_at, delay_seconds, max_attempts, number)
    cross join lateral (
      select
        own.id,
        own.max_attempts
      from {namespace}.lane own
      where own.name = asked.lane
      limit 1
    ) l
    cross join (select {namespace}.clock() as at) now
    where not exists (select from missing)
    order by asked.number
  ) wish
),
ready as (
  insert into {namespace}.job (id, lane_id, kind, payload, rank, run_at, state, max_attempts, created_at)
  overriding system value
  select
    id,
    lane_id,
    kind,
    payload,
    rank,
    run_at,
    'ready',
    max_attempts,
    at
  from given
  where run_at <= at
),
later as (
  insert into {namespace}.job_scheduled (id, lane_id, kind, payload, rank, run_at, max_attempts, created_at)
  select
    id,
    lane_id,
    kind,
    payload,
    rank,
    run_at,
    max_attempts,
    at
  from given
  where run_at > at
),
told as materialized (
  select pg_notify(%(channel)s, lane) as nothing
  from unnest(%(told)s::text[]) as lane
)
select
  given.number,
  given.id,
  given.run_at,
  given.run_at <= given.at as ready,
  given.max_attempts,
  given.at,
  (select count(nothing) from told) as told
from given
order by given.number
