-- Under the pool's lock, so that its state holds still: a slot of a pool that takes no new holds is closed from the start.
insert into {namespace}.slot (pool_id, window_id, number, open, capacity)
select
  p.id,
  %(window_id)s,
  fresh.number,
  p.state = 'open',
  0
from {namespace}.pool p
cross join generate_series(%(first)s::bigint, %(last)s::bigint) as fresh (number)
where p.id = %(pool_id)s
