-- A page of jobs, wherever they are, in one snapshot, along the primary keys of the three tables. It ends with an id, so
-- that all rows of one id are in the same; its end is found without `last`, by which a planner that knows nothing of a
-- table yet would take it for small and sort it. The sequence is read after the snapshot was taken: it is never behind.
with page as materialized (
  select least(max(numbered.id), %(last)s) as last
  from (
    select merged.id
    from (
      (
        select j.id
        from {namespace}.job j
        where j.id > %(after)s
        order by j.id
        limit %(limit)s
      )
      union all
      (
        select s.id
        from {namespace}.job_scheduled s
        where s.id > %(after)s
        order by s.id
        limit %(limit)s
      )
      union all
      (
        select f.id
        from {namespace}.job_finished f
        where f.id > %(after)s
        order by f.id
        limit %(limit)s
      )
    ) merged
    order by merged.id
    limit %(limit)s
  ) numbered
),
seen as materialized (
  select
    j.id, 'job' as place, j.lane_id, j.state, j.rescued, j.cancel_requested, j.token, j.max_attempts, j.failures,
    j.started_at, j.lease_expires_at, j.worker
  from {namespace}.job j
  where j.id > %(after)s
    and j.id <= (select page.last from page)
  union all
  select
    s.id, 'job_scheduled', s.lane_id, 'scheduled', false, false, s.token, s.max_attempts, s.failures,
    s.started_at, null, s.worker
  from {namespace}.job_scheduled s
  where s.id > %(after)s
    and s.id <= (select page.last from page)
  union all
  select
    f.id, 'job_finished', f.lane_id, f.state, false, false, f.token, f.max_attempts, f.failures,
    f.started_at, null, f.worker
  from {namespace}.job_finished f
  where f.id > %(after)s
    and f.id <= (select page.last from page)
),
drawn as materialized (
  select case when s.is_called then s.last_value else s.last_value - 1 end as last
  from {namespace}.job_id_seq s
),
found as (
  select
    seen.id as job_id,
    'job_place' as what,
    string_agg(seen.place, ' and ' order by seen.place) as stored,
    'one place' as recomputed
  from seen
  group by seen.id
  having count(*) > 1
  union all
  select
    seen.id,
    'job_id',
    seen.id::text,
    'at most ' || drawn.last
  from seen
  cross join drawn
  where seen.id > drawn.last
  union all
  select
    seen.id,
    'job_lane_missing',
    'lane id ' || seen.lane_id,
    'no such lane'
  from seen
  where not exists (select from {namespace}.lane l where l.id = seen.lane_id)
  union all
  select
    seen.id,
    'job_state',
    seen.state || ' in ' || seen.place,
    case seen.place when 'job' then 'ready or running' else 'succeeded, discarded or cancelled' end
  from seen
  where (seen.place = 'job' and seen.state not in ('ready', 'running'))
    or (seen.place = 'job_finished' and seen.state not in ('succeeded', 'discarded', 'cancelled'))
  union all
  select
    seen.id,
    'job_lease',
    coalesce(seen.lease_expires_at::text, 'null'),
    case seen.state when 'running' then 'a lease' else 'null' end
  from seen
  where (seen.state = 'running') <> (seen.lease_expires_at is not null)
  union all
  select
    seen.id,
    'job_token',
    seen.token::text,
    'at least 1'
  from seen
  where seen.state in ('running', 'succeeded')
    and seen.token < 1
  union all
  select
    seen.id,
    'job_started_at',
    'null',
    'when it was claimed'
  from seen
  where seen.state in ('running', 'succeeded')
    and seen.started_at is null
  union all
  select
    seen.id,
    'job_worker',
    'null',
    'who has claimed it'
  from seen
  where seen.state in ('running', 'succeeded')
    and seen.worker is null
  union all
  select
    seen.id,
    'job_rescued',
    'true',
    'false, for it is ' || seen.state
  from seen
  where seen.rescued
    and seen.state <> 'ready'
  union all
  select
    seen.id,
    'job_cancel_requested',
    'true',
    'false, for it is ' || seen.state
  from seen
  where seen.cancel_requested
    and seen.state <> 'running'
  union all
  select
    seen.id,
    'job_failures',
    seen.failures::text,
    'less than ' || seen.max_attempts
  from seen
  where seen.place <> 'job_finished'
    and seen.failures >= seen.max_attempts
)
select
  (select page.last from page) as last,
  (select count(distinct seen.id) from seen) as jobs,
  (select count(*) from found) as found_count,
  shown.job_id,
  shown.what,
  shown.stored,
  shown.recomputed
from (select 1) as always
left join (
  select
    found.job_id,
    found.what,
    found.stored,
    found.recomputed
  from found
  order by
    found.job_id,
    found.what,
    found.stored
  limit %(differences_max)s
) shown
  on true
order by
  shown.job_id,
  shown.what,
  shown.stored
