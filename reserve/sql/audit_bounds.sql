-- How far an audit goes: what is made after its start is left to the next one, else it might never end. Line and movement
-- count too, so that those whose hold or pool is gone are reached. Row counts are estimates, for the progress alone.
select
  greatest(
    (select p.id from {namespace}.pool p order by p.id desc limit 1),
    (select m.pool_id from {namespace}.movement m order by m.pool_id desc limit 1),
    0
  ) as pool_last,
  greatest(
    (select h.id from {namespace}.hold h order by h.id desc limit 1),
    (select l.hold_id from {namespace}.hold_line l order by l.hold_id desc limit 1),
    (
      select m.hold_id
      from {namespace}.movement m
      where m.hold_id is not null
      order by m.hold_id desc
      limit 1
    )
  ) as hold_last,
  (select c.reltuples::bigint from pg_class c where c.oid = '{namespace}.pool'::regclass) as pools,
  (select c.reltuples::bigint from pg_class c where c.oid = '{namespace}.hold'::regclass) as holds
