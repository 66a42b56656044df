-- By key, an archived pool after the live one of its key. A prefix is a range of the key's own (byte) order.
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
where (p.key, p.id) > (%(after_key)s, %(after_id)s)
  and (%(prefix)s::text is null or (p.key >= %(prefix)s and starts_with(p.key, %(prefix)s)))
  and (%(keys)s::text[] is null or p.key = any (%(keys)s::text[]))
  and (%(kind)s::text is null or p.kind = %(kind)s)
  and p.state = any (%(states)s::text[])
order by
  p.key,
  p.id
limit %(limit)s
