-- The oldest discarded jobs of a lane, along job_finished_unsuccessful, locked in the order of ids.
select f.id
from {namespace}.job_finished f
where f.lane_id = %(lane_id)s
  and f.state = 'discarded'
  and f.state <> 'succeeded'
  and (%(kind)s::text is null or f.kind = %(kind)s::text)
order by f.id
limit %(limit)s
for no key update
