-- Read under `slot_lock`. What has lapsed unswept comes from the same snapshot as the quantities.
select
  s.id,
  s.pool_id,
  s.window_id,
  s.number,
  s.open,
  s.short,
  s.capacity,
  s.held,
  s.confirmed,
  s.buffer,
  s.withheld,
  s.shortage
from {namespace}.slot s
where s.pool_id = any (%(pool_ids)s::bigint[])
order by s.id
