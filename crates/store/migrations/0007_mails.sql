create table mails (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    kind text not null check (kind in ('invoice', 'receipt')),
    object_id text not null,
    recipient text not null,
    status text not null check (status in ('pending', 'sent', 'failed')),
    attempts bigint not null,
    -- Set while the mail is pending, and only then.
    next_try_at bigint check ((next_try_at is null) = (status <> 'pending')),
    last_error text,
    sent_at bigint check ((sent_at is null) = (status <> 'sent')),
    lease_until bigint not null,
    lease_token bigint not null,
    created_at bigint not null,
    primary key (organization_id, mode, id)
);
create index mails_due on mails (next_try_at) where status = 'pending';
create index mails_by_object on mails (organization_id, mode, object_id, id);
