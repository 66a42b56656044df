-- Only changes of a pool take this lock, before any slot; placing a hold never looks at it.
select p.id
from {namespace}.pool p
where p.key = %(key)s
  and p.state <> 'archived'
for no key update
