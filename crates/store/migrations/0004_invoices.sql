-- A transaction that was recorded by hand has neither a session nor a rail. A column can't be made nullable on both
-- databases, so that the table is built anew.
create table transactions_rebuilt (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in
        ('pending', 'processing', 'completed', 'failed', 'cancelled', 'expired', 'refunded', 'partially_refunded')),
    step text not null check (step in ('sending', 'waiting', 'unknown', 'settled')),
    -- 1: a person has to look at it (unknown or parked); 2: money that came twice.
    attention bigint not null check (attention in (0, 1, 2)),
    payment_session_id text,
    object_type text not null,
    object_id text not null,
    payment_method text not null,
    rail text,
    rail_reference text,
    amount_minor bigint not null check (amount_minor > 0),
    fee_minor bigint not null check (fee_minor >= 0 and fee_minor <= amount_minor),
    currency text not null,
    created_at bigint not null,
    updated_at bigint not null,
    check ((payment_session_id is null) = (rail is null)),
    check (rail is not null or (step = 'settled' and rail_reference is null and fee_minor = 0)),
    primary key (organization_id, mode, id),
    unique (organization_id, mode, payment_session_id)
);
insert into transactions_rebuilt (organization_id, mode, id, version, doc, status, step, attention, payment_session_id,
    object_type, object_id, payment_method, rail, rail_reference, amount_minor, fee_minor, currency, created_at, updated_at)
select organization_id, mode, id, version, doc, status, step, attention, payment_session_id,
    object_type, object_id, payment_method, rail, rail_reference, amount_minor, fee_minor, currency, created_at, updated_at
from transactions;
drop table transactions;
alter table transactions_rebuilt rename to transactions;
create index transactions_by_status on transactions (organization_id, mode, status, id);
create index transactions_by_object on transactions (organization_id, mode, object_id, id);
create index transactions_for_attention on transactions (organization_id, mode, attention, id) where attention > 0;

create table invoices (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    number text not null,
    status text not null check (status in ('draft', 'pending', 'partially_paid', 'overdue', 'paid', 'cancelled')),
    customer_id text not null,
    subscription_id text,
    currency text not null,
    amount_minor bigint not null check (amount_minor > 0),
    tax_minor bigint not null check (tax_minor >= 0 and tax_minor <= amount_minor),
    total_minor bigint not null check (total_minor = amount_minor + tax_minor),
    paid_minor bigint not null check (paid_minor >= 0),
    remaining_minor bigint not null check (remaining_minor >= 0),
    -- When a pending one is overdue.
    overdue_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    check (paid_minor + remaining_minor = total_minor),
    check (case status
        when 'paid' then remaining_minor = 0
        when 'partially_paid' then paid_minor > 0 and remaining_minor > 0
        else paid_minor = 0
    end),
    check ((status = 'pending') = (overdue_at is not null)),
    primary key (organization_id, mode, id),
    unique (organization_id, mode, number),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
create index invoices_by_status on invoices (organization_id, mode, status, id);
create index invoices_by_customer on invoices (organization_id, mode, customer_id, id);
create index invoices_by_subscription on invoices (organization_id, mode, subscription_id, id)
    where subscription_id is not null;
create index invoices_open on invoices (organization_id, mode, id, status, overdue_at)
    where status in ('pending', 'partially_paid', 'overdue');

create table invoice_payments (
    organization_id text not null,
    mode text not null,
    id text not null unique,
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
create index invoice_payments_by_invoice on invoice_payments (organization_id, mode, invoice_id, id);

create table receipts (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    number text not null,
    -- Whoever has it may ask whether the receipt is real, and is not asked whose it is.
    validation_code text not null unique,
    invoice_id text not null,
    transaction_id text not null,
    currency text not null,
    amount_minor bigint not null check (amount_minor > 0),
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    unique (organization_id, mode, number)
);
create index receipts_by_invoice on receipts (organization_id, mode, invoice_id, id);

-- How far a series of numbers has counted. Locked last, in the transaction that uses the number.
create table counters (
    organization_id text not null,
    mode text not null,
    series text not null check (series in ('invoice', 'receipt')),
    period text not null,
    last_number bigint not null check (last_number > 0),
    primary key (organization_id, mode, series, period)
);
