-- Of jobs that the caller has locked: ready again at once, where they were in the order.
update {namespace}.job t
set
  state = 'ready',
  rescued = false,
  lease_expires_at = null,
  failures = given.failures,
  error = coalesce(given.error, t.error)
from unnest(%(ids)s::bigint[], %(errors)s::text[], %(failures)s::smallint[]) as given (id, error, failures)
where t.id = any (%(ids)s::bigint[])
  and t.id = given.id
returning
  t.id,
  t.run_at
