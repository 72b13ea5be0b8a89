create table payment_links (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in ('active', 'inactive', 'deleted')),
    currency text not null,
    -- When the timer looks.
    expiration_at bigint,
    usage_count bigint not null check (usage_count >= 0),
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
create index payment_links_by_status on payment_links (organization_id, mode, status, id);

-- The attempts that hold a use of a limited link.
create index transactions_open on transactions (organization_id, mode, object_id) where status in ('pending', 'processing');
