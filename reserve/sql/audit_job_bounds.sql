-- How far the audit of the jobs goes: what is enqueued after its start is left to the next one. The row count is an
-- estimate, for the progress alone; a partitioned table has none of its own.
select
  least(
    (select j.id from {namespace}.job j order by j.id limit 1),
    (select s.id from {namespace}.job_scheduled s order by s.id limit 1),
    (select f.id from {namespace}.job_finished f order by f.id limit 1)
  ) - 1 as before_first,
  greatest(
    (select j.id from {namespace}.job j order by j.id desc limit 1),
    (select s.id from {namespace}.job_scheduled s order by s.id desc limit 1),
    (select f.id from {namespace}.job_finished f order by f.id desc limit 1)
  ) as last,
  (
    select sum(greatest(c.reltuples, 0))::bigint
    from pg_class c
    where c.oid in ('{namespace}.job'::regclass, '{namespace}.job_scheduled'::regclass)
      or c.oid in (
        select i.inhrelid
        from pg_inherits i
        where i.inhparent = '{namespace}.job_finished'::regclass
      )
  ) as jobs
