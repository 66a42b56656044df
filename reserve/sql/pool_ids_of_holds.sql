select distinct l.pool_id
from {namespace}.hold_line l
where l.hold_id = any (%(ids)s::uuid[])
order by l.pool_id
