-- Sorted, so that two imports of the same keys wait for each other and do not deadlock. Fewer rows than given means
-- that somebody has just created one of them.
insert into {namespace}.pool (key, kind, created_at)
select
  fresh.key,
  'stock',
  {namespace}.clock()
from unnest(%(keys)s::text[]) as fresh (key)
order by fresh.key
on conflict (key) where state <> 'archived' do nothing
returning
  id,
  key
