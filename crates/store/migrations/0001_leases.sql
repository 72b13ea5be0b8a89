-- What the migrations themselves need. Several nodes may run this one at the same time, so it is the only one that says
-- "if not exists".
create table if not exists schema_migrations (
    number bigint primary key,
    name text not null,
    checksum text not null,
    applied_at bigint not null
);

create table if not exists leases (
    name text primary key,
    holder text not null,
    token bigint not null,
    expires_at bigint not null
);
