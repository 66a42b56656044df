-- Replays add nothing to the need; an expired key that is not pruned yet counts as not stored. Keys and pools are
-- looked up one by one (`limit 1`): a join that is planned while their tables are small would read all of them later.
stored as materialized (
  select
    asked.request,
    found.fingerprint,
    found.status,
    found.location,
    found.etag,
    found.body
  from unnest(%(key_requests)s::bigint[], %(principals)s::bigint[], %(keys)s::text[])
    as asked (request, principal_id, key)
  cross join lateral (
    select
      k.fingerprint,
      k.status,
      k.location,
      k.etag,
      k.body
    from {namespace}.idempotency_key k
    where k.principal_id = asked.principal_id
      and k.key = asked.key
      and k.expires_at > (select {namespace}.clock())
    limit 1
  ) found
),
wanted as materialized (
  select
    p.id as pool_id,
    0::bigint as window_id,
    p.key,
    p.state,
    p.hold_ttl_seconds,
    coalesce(sum(line.quantity) filter (where stored.request is null), 0)::bigint as quantity
  from unnest(%(line_requests)s::bigint[], %(line_pools)s::text[], %(line_quantities)s::bigint[])
    as line (request, pool, quantity)
  cross join lateral (
    select
      pool.id,
      pool.key,
      pool.state,
      pool.hold_ttl_seconds
    from {namespace}.pool
    where pool.key = line.pool
      and pool.state <> 'archived'
    limit 1
  ) p
  left join stored
    on stored.request = line.request
  group by
    p.id,
    p.key,
    p.state,
    p.hold_ttl_seconds
)
