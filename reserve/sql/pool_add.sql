insert into {namespace}.pool (key, kind, hold_ttl_seconds, metadata, created_at)
values (%(key)s, %(kind)s, %(hold_ttl_seconds)s, %(metadata)s::jsonb, {namespace}.clock())
on conflict (key) where state <> 'archived' do nothing
returning id
