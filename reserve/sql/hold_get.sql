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
  h.pools,
  h.quantities
from {namespace}.hold_as_read h
where h.id = %(id)s
