-- Where the next page of holds ends, and how many they are.
select
  page.last,
  page.holds
from (
  select
    (array_agg(h.id order by h.id desc))[1] as last,
    count(*) as holds
  from (
    select h.id
    from {namespace}.hold h
    where h.id > %(after)s
      and h.id <= %(last)s
    order by h.id
    limit %(limit)s
  ) h
) page
