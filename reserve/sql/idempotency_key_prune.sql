-- Oldest first, along idempotency_key_expired; locked one by one in the order of keys, in which a batch that takes them
-- over locks them too. One that was taken over meanwhile is looked at again under its lock, and stays.
with old as materialized (
  select
    oldest.principal_id,
    oldest.key
  from (
    select
      k.principal_id,
      k.key
    from {namespace}.idempotency_key k
    where k.expires_at <= (select {namespace}.clock())
    order by
      k.expires_at,
      k.principal_id,
      k.key
    limit %(limit)s
  ) oldest
  order by
    oldest.principal_id,
    oldest.key
),
locked as materialized (
  select
    k.principal_id,
    k.key
  from old
  cross join lateral (
    select
      own.principal_id,
      own.key
    from {namespace}.idempotency_key own
    where own.principal_id = old.principal_id
      and own.key = old.key
      and own.expires_at <= (select {namespace}.clock())
    limit 1
    for update
  ) k
)
delete from {namespace}.idempotency_key k
using locked
where k.principal_id = locked.principal_id
  and k.key = locked.key
