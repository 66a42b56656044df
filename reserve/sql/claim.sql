-- The one claim of this service, for every lane of work: `reserve.db.claim` fills in the words in angle brackets.
-- The textbook's `update … where id = (select … for update skip locked limit 1)`, for many keys in one round trip.
-- `no key update`, because `for update` would skip a free row that a foreign key check is just looking at.
with <before>need as materialized (
  <need>
),
picked as materialized (
  select
    ready.id<carried>
  from need
  cross join lateral (
    select t.id
    from {namespace}.<table> t
    where <ready>
    order by <order>
    limit <limit>
    for no key update skip locked
  ) ready
),
claimed as (
  <change>
  returning <returning>
)
<after>
