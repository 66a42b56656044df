-- Last in the lock order, and sorted: who meets a key that another transaction has just written waits for its end.
-- A row past its retention that is not pruned yet is taken over. Fewer rows than given means that a key was used.
insert into {namespace}.idempotency_key as stored (
  principal_id,
  key,
  fingerprint,
  status,
  location,
  etag,
  body,
  created_at,
  expires_at
)
select
  fresh.principal_id,
  fresh.key,
  fresh.fingerprint,
  fresh.status,
  fresh.location,
  fresh.etag,
  fresh.body,
  now.at,
  now.at + make_interval(secs => %(retention_seconds)s)
from unnest(
  %(principals)s::bigint[],
  %(keys)s::text[],
  %(fingerprints)s::bytea[],
  %(statuses)s::smallint[],
  %(locations)s::text[],
  %(etags)s::text[],
  %(bodies)s::bytea[]
) as fresh (principal_id, key, fingerprint, status, location, etag, body)
cross join (select {namespace}.clock() as at) now
order by
  fresh.principal_id,
  fresh.key collate "C"
on conflict (principal_id, key) do update
set
  fingerprint = excluded.fingerprint,
  status = excluded.status,
  location = excluded.location,
  etag = excluded.etag,
  body = excluded.body,
  created_at = excluded.created_at,
  expires_at = excluded.expires_at
where stored.expires_at <= excluded.created_at
returning {namespace}.clock() as at
