-- Mails to merchants as well. A check can't be changed in place on every database.
create table mails_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    kind text not null check (kind in ('invoice', 'receipt', 'endpoint_disabled')),
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
insert into mails_rebuilt (organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, last_error,
    sent_at, lease_until, lease_token, created_at)
select organization_id, mode, id, kind, object_id, recipient, status, attempts, next_try_at, last_error,
    sent_at, lease_until, lease_token, created_at
from mails;
drop table mails;
alter table mails_rebuilt rename to mails;
create index mails_due_of_mode on mails (mode, next_try_at, id) where status = 'pending';
create index mails_by_object on mails (organization_id, mode, object_id, id);
