update {namespace}.pool
set
  hold_ttl_seconds = %(hold_ttl_seconds)s,
  metadata = %(metadata)s::jsonb,
  version = version + 1
where id = %(id)s
