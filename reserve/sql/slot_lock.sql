-- All slots of the pools, in the one order for slots, waiting for whoever has them. What they hold is read by a
-- statement of its own after this one: its snapshot is taken when the locks are ours.
select s.id
from {namespace}.slot s
where s.pool_id = any (%(pool_ids)s::bigint[])
order by s.id
for no key update
