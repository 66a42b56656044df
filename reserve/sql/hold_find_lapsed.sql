-- From the lines, since only they know the pool, oldest first; the holds are then locked and looked at again.
select distinct lapsed.hold_id
from {namespace}.pool p
cross join lateral (
  select l.hold_id
  from {namespace}.hold_line l
  where l.pool_id = p.id
    and l.window_id = 0
    and l.state = 'held'
    and l.expires_at <= (select {namespace}.clock())
  order by l.expires_at
  limit %(limit)s
) lapsed
where p.key = any (%(pools)s::text[])
  and p.state <> 'archived'
order by lapsed.hold_id
limit %(limit)s
