-- Each effect raises the version it was decided on, so that it happens once; the caller compares the row count. Not
-- finalized is what held means by the table's check; the word would let a plan made while the table was small walk
-- hold_lapsed, all held holds.
update {namespace}.hold h
set
  state = change.state,
  version = change.version,
  expires_at = change.expires_at,
  finalized_at = change.finalized_at
from unnest(
  %(ids)s::uuid[],
  %(versions)s::bigint[],
  %(states)s::text[],
  %(expires_ats)s::timestamptz[],
  %(finalized_ats)s::timestamptz[]
) as change (id, version, state, expires_at, finalized_at)
where h.id = any (%(ids)s::uuid[])
  and h.id = change.id
  and h.version = change.version - 1
  and h.finalized_at is null
