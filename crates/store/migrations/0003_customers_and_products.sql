create table customers (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    -- The e-mail address as it is compared.
    email_key text,
    phone text,
    -- Kept for what refers to it, and found by nobody.
    deleted_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    check (email_key is not null or phone is not null),
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
create unique index customers_by_email on customers (organization_id, mode, email_key) where deleted_at is null;
create unique index customers_by_phone on customers (organization_id, mode, phone) where deleted_at is null;

create table products (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    price_minor bigint not null check (price_minor > 0),
    currency text not null,
    active bigint not null check (active in (0, 1)),
    deleted_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
create index products_by_activity on products (organization_id, mode, active, id) where deleted_at is null;
