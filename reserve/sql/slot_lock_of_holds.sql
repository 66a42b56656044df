-- All slots of every pool that these holds have lines in: for a give-back to a pool that is short.
select s.id
from {namespace}.slot s
where s.pool_id = any (
  array(
    select l.pool_id
    from {namespace}.hold_line l
    where l.hold_id = any (%(ids)s::uuid[])
  )
)
order by s.id
for no key update
