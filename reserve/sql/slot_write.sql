-- Under the locks of all slots of the pool; the caller compares the row count.
update {namespace}.slot s
set
  short = fresh.short,
  capacity = fresh.capacity,
  buffer = fresh.buffer,
  shortage = fresh.shortage
from unnest(
  %(ids)s::bigint[],
  %(shorts)s::boolean[],
  %(capacities)s::bigint[],
  %(buffers)s::bigint[],
  %(shortages)s::bigint[]
) as fresh (id, short, capacity, buffer, shortage)
where s.id = any (%(ids)s::bigint[])
  and s.id = fresh.id
