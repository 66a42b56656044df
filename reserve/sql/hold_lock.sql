-- In the one order for holds. They are read by the next statement, whose snapshot and clock come after all the waits:
-- a hold that lapsed while this waited is seen to have lapsed.
select h.id
from {namespace}.hold h
where h.id = any (%(ids)s::uuid[])
order by h.id
for no key update
