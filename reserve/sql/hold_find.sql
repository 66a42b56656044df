-- Newest first. `stored_states` is what the asked state may be stored as (an expired hold may still be stored as
-- held), so that an index on the stored state serves; the state as read is compared on top.
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
where h.id < %(before)s
  and (%(owner)s::text is null or h.owner = %(owner)s)
  and (%(reference)s::text is null or h.reference = %(reference)s)
  and (%(state)s::text is null or h.state = %(state)s)
  and (%(stored_states)s::text[] is null or h.stored_state = any (%(stored_states)s::text[]))
  and (
    %(pool)s::text is null
    or exists (
      select
      from {namespace}.pool p
      join {namespace}.hold_line l
        on l.pool_id = p.id
      where p.key = %(pool)s
        and p.state <> 'archived'
        and l.hold_id = h.id
    )
  )
order by h.id desc
limit %(limit)s
