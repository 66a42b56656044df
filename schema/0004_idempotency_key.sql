-- What was answered under an idempotency key, written in the transaction of the effect.

create table {namespace}.idempotency_key (
  principal_id bigint not null default 0,
  key text collate "C" not null check (char_length(key) between 1 and 255),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  status smallint not null check (status between 200 and 299),
  location text,
  etag text,
  body bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null check (expires_at > created_at),
  primary key (principal_id, key)
);
comment on column {namespace}.idempotency_key.principal_id is '0 until there are credentials.';
comment on column {namespace}.idempotency_key.status is 'Successes only: refusals have no effect and are judged anew.';

create index idempotency_key_expired on {namespace}.idempotency_key (expires_at);
