-- Sorted, so that two who add the same lanes do not wait for each other in a ring.
insert into {namespace}.lane (name, created_at)
select
  asked.name,
  {namespace}.clock()
from (
  select distinct given.name collate "C" as name
  from unnest(%(names)s::text[]) as given (name)
  order by 1
) asked
on conflict (name) do nothing
returning id
