-- Under locks that the caller already holds, so that a key stored by whoever held them before is seen. Each is looked
-- up on its own (`limit 1`): a join that is planned while the table is small would read all live keys by their expiry.
select
  k.principal_id,
  k.key,
  k.fingerprint,
  k.status,
  k.location,
  k.etag,
  k.body
from unnest(%(principals)s::bigint[], %(keys)s::text[]) as asked (principal_id, key)
cross join lateral (
  select
    stored.principal_id,
    stored.key,
    stored.fingerprint,
    stored.status,
    stored.location,
    stored.etag,
    stored.body
  from {namespace}.idempotency_key stored
  where stored.principal_id = asked.principal_id
    and stored.key = asked.key
    and stored.expires_at > (select {namespace}.clock())
  limit 1
) k
order by
  k.principal_id,
  k.key
