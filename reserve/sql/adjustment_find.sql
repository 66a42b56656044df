-- Newest first, along movement_adjusted.
select
  m.id,
  p.key as pool,
  m.quantity as delta,
  m.reason,
  m.on_hand,
  m.at as created_at
from {namespace}.movement m
join {namespace}.pool p
  on p.id = m.pool_id
where m.pool_id = %(pool_id)s
  and m.kind = 'adjusted'
  and m.id < %(before)s
order by m.id desc
limit %(limit)s
