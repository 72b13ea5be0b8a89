-- What is found within its organization needs no name that is unique everywhere, and each index less is work less with every
-- write. A constraint can't be dropped on both databases, so that the tables are built anew.

-- A client secret names its checkout; the digest that it is held against is in the document.
create table checkouts_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in ('pending', 'completed', 'expired', 'cancelled')),
    amount_minor bigint not null check (amount_minor > 0),
    currency text not null,
    customer_id text,
    reference text,
    -- When the timer looks again: the expiry, or later while the provider has an attempt.
    deadline_at bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
insert into checkouts_rebuilt (organization_id, mode, id, version, doc, status, amount_minor, currency, customer_id,
    reference, deadline_at, created_at, updated_at)
select organization_id, mode, id, version, doc, status, amount_minor, currency, customer_id,
    reference, deadline_at, created_at, updated_at
from checkouts
order by organization_id, mode, id;
drop table checkouts;
alter table checkouts_rebuilt rename to checkouts;
create index checkouts_by_status on checkouts (organization_id, mode, status, id);
create index checkouts_by_reference on checkouts (organization_id, mode, reference, id) where reference is not null;
create index checkouts_by_customer on checkouts (organization_id, mode, customer_id, id) where customer_id is not null;

create table events_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null,
    type text not null,
    object_id text not null,
    sequence bigint not null check (sequence > 0),
    body text not null,
    created_at bigint not null,
    primary key (organization_id, mode, id),
    unique (organization_id, mode, object_id, sequence)
);
insert into events_rebuilt (organization_id, mode, id, type, object_id, sequence, body, created_at)
select organization_id, mode, id, type, object_id, sequence, body, created_at
from events
order by organization_id, mode, id;
drop table events;
alter table events_rebuilt rename to events;
create index events_by_type on events (organization_id, mode, type, id);

-- Committed events that have no place in the log yet.
create table events_unlogged_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null,
    primary key (organization_id, mode, id)
);
insert into events_unlogged_rebuilt (organization_id, mode, id)
select organization_id, mode, id
from events_unlogged;
drop table events_unlogged;
alter table events_unlogged_rebuilt rename to events_unlogged;

create table event_log_rebuilt (
    organization_id text not null,
    mode text not null,
    log_no bigint not null,
    event_id text not null,
    primary key (organization_id, mode, log_no),
    unique (organization_id, mode, event_id)
);
insert into event_log_rebuilt (organization_id, mode, log_no, event_id)
select organization_id, mode, log_no, event_id
from event_log
order by organization_id, mode, log_no;
drop table event_log;
alter table event_log_rebuilt rename to event_log;

-- The place of each sealed entry. It is given after the commit, so that an entry that commits late is not skipped.
create table ledger_log_rebuilt (
    organization_id text not null,
    mode text not null,
    log_no bigint not null check (log_no > 0),
    entry_id text not null,
    primary key (organization_id, mode, log_no),
    unique (organization_id, mode, entry_id)
);
insert into ledger_log_rebuilt (organization_id, mode, log_no, entry_id)
select organization_id, mode, log_no, entry_id
from ledger_log
order by organization_id, mode, log_no;
drop table ledger_log;
alter table ledger_log_rebuilt rename to ledger_log;

create table customers_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null,
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
insert into customers_rebuilt (organization_id, mode, id, version, doc, email_key, phone, deleted_at, created_at, updated_at)
select organization_id, mode, id, version, doc, email_key, phone, deleted_at, created_at, updated_at
from customers
order by organization_id, mode, id;
drop table customers;
alter table customers_rebuilt rename to customers;
create unique index customers_by_email on customers (organization_id, mode, email_key) where deleted_at is null;
create unique index customers_by_phone on customers (organization_id, mode, phone) where deleted_at is null;

create table products_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null,
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
insert into products_rebuilt (organization_id, mode, id, version, doc, price_minor, currency, active, deleted_at,
    created_at, updated_at)
select organization_id, mode, id, version, doc, price_minor, currency, active, deleted_at, created_at, updated_at
from products
order by organization_id, mode, id;
drop table products;
alter table products_rebuilt rename to products;
create index products_by_activity on products (organization_id, mode, active, id) where deleted_at is null;

create table invoice_payments_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null,
    version bigint not null,
    doc text not null,
    invoice_id text not null,
    transaction_id text not null,
    receipt_id text not null,
    currency text not null,
    amount_minor bigint not null check (amount_minor > 0),
    created_at bigint not null,
    primary key (organization_id, mode, id),
    unique (organization_id, mode, transaction_id),
    unique (organization_id, mode, receipt_id)
);
insert into invoice_payments_rebuilt (organization_id, mode, id, version, doc, invoice_id, transaction_id, receipt_id,
    currency, amount_minor, created_at)
select organization_id, mode, id, version, doc, invoice_id, transaction_id, receipt_id, currency, amount_minor, created_at
from invoice_payments
order by organization_id, mode, id;
drop table invoice_payments;
alter table invoice_payments_rebuilt rename to invoice_payments;
create index invoice_payments_by_invoice on invoice_payments (organization_id, mode, invoice_id, id);

-- What somebody waits for doesn't wait behind files that are made ahead.
create table jobs_rebuilt (
    kind text not null,
    object_id text not null,
    organization_id text not null,
    mode text not null,
    due_at bigint not null,
    lane bigint not null check (lane in (0, 1)),
    attempts bigint not null,
    lease_until bigint not null,
    lease_token bigint not null,
    primary key (kind, object_id)
);
insert into jobs_rebuilt (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
select kind, object_id, organization_id, mode, due_at,
    case when kind in ('render_invoice', 'render_receipt', 'fetch_logo') then 1 else 0 end,
    attempts, lease_until, lease_token
from jobs;
drop table jobs;
alter table jobs_rebuilt rename to jobs;
create index jobs_due on jobs (lane, due_at);
