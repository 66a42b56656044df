select
  h.id,
  h.state,
  h.owner,
  h.reference,
  h.metadata,
  h.created_at,
  h.expires_at,
  h.finalized_at,
  h.version,
  h.unswept,
  h.pools,
  h.quantities,
  {namespace}.clock() as now
from {namespace}.hold_as_read h
where h.id = any (%(ids)s::uuid[])
order by h.id
