select
  p.id,
  p.key,
  p.kind,
  p.state,
  p.on_hand,
  p.available,
  p.held,
  p.confirmed,
  p.buffer,
  p.withheld,
  p.hold_ttl_seconds,
  p.max_per_owner,
  p.late_confirm,
  p.window_every,
  p.window_time_zone,
  p.quota_limit,
  p.metadata,
  p.created_at,
  p.version,
  p.as_of
from {namespace}.pool_as_read p
where p.key = %(key)s
  and p.state <> 'archived'
