-- The first movements of pools that this transaction has made: what is on hand, and a buffer where there is one.
insert into {namespace}.movement (at, pool_id, window_id, kind, quantity, reason, on_hand)
select
  {namespace}.clock(),
  fresh.pool_id,
  0,
  'adjusted',
  fresh.on_hand,
  'created',
  fresh.on_hand
from unnest(%(pool_ids)s::bigint[], %(on_hands)s::bigint[]) as fresh (pool_id, on_hand)
union all
select
  {namespace}.clock(),
  fresh.pool_id,
  0,
  'buffered',
  fresh.buffer,
  null,
  null
from unnest(%(pool_ids)s::bigint[], %(buffers)s::bigint[]) as fresh (pool_id, buffer)
where fresh.buffer > 0
