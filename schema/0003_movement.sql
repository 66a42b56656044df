-- The ledger: each change of a quantity, append-only. Every quantity can be recomputed from it.

create table {namespace}.movement (
  id bigint generated always as identity primary key,
  xid xid8 not null default pg_current_xact_id(),
  at timestamptz not null,
  pool_id bigint not null,
  window_id bigint not null default 0,
  hold_id uuid,
  hold_version bigint,
  kind text not null check (kind in (
    'placed', 'confirmed', 'released', 'expired', 'fulfilled', 'returned',
    'adjusted', 'buffered', 'withheld', 'offered')),
  quantity bigint not null,
  reason text check (char_length(reason) <= 200),
  on_hand bigint,
  constraint movement_of_hold check ((hold_id is null) = (hold_version is null)),
  constraint movement_kind_of_hold
    check ((hold_id is null) = (kind in ('adjusted', 'buffered', 'withheld', 'offered'))),
  constraint movement_on_hand check (on_hand is null or kind = 'adjusted')
);
comment on column {namespace}.movement.id is 'Drawn under the hold''s row lock, so that one hold''s movements are in order.';
comment on column {namespace}.movement.quantity is
  'How much: positive for holds; the signed change for adjusted and buffered; positive for withheld and offered.';
comment on column {namespace}.movement.on_hand is 'For adjusted: the pool''s on_hand right after, read under its locks.';

create unique index movement_once on {namespace}.movement (hold_id, hold_version, pool_id, window_id, kind)
  where hold_id is not null;
create index movement_by_pool on {namespace}.movement (pool_id, id);
create index movement_adjusted on {namespace}.movement (pool_id, id) where kind = 'adjusted';

create function {namespace}.movement_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'movements are append-only' using errcode = 'restrict_violation';
end $$;
create trigger movement_append_only before update on {namespace}.movement
  for each row execute function {namespace}.movement_is_append_only();
