-- Of pools that this transaction has made, which nobody else can see yet.
insert into {namespace}.slot (pool_id, number, capacity, buffer)
select
  fresh.pool_id,
  fresh.number,
  fresh.capacity,
  fresh.buffer
from unnest(%(pool_ids)s::bigint[], %(numbers)s::bigint[], %(capacities)s::bigint[], %(buffers)s::bigint[])
  as fresh (pool_id, number, capacity, buffer)
order by
  fresh.pool_id,
  fresh.number
