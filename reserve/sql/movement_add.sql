-- Of a pool, not of a hold: under the locks of the pool and all its slots.
insert into {namespace}.movement (at, pool_id, window_id, kind, quantity, reason, on_hand)
values ({namespace}.clock(), %(pool_id)s, 0, %(kind)s, %(quantity)s, %(reason)s, %(on_hand)s)
returning
  id,
  at
