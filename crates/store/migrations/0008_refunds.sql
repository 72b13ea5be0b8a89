-- What was paid back of a transaction, and what is asked back with an open outcome: together at most what was paid.
alter table transactions add column refunded_minor bigint not null default 0 check (refunded_minor >= 0);
alter table transactions add column refunding_minor bigint not null default 0
    check (refunding_minor >= 0 and refunded_minor + refunding_minor <= amount_minor);

create table refunds (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    transaction_id text not null,
    status text not null check (status in ('pending', 'processing', 'completed', 'failed')),
    step text not null check (step in ('sending', 'waiting', 'unknown', 'settled')),
    -- 1: a person has to look at it (unknown or parked).
    attention bigint not null check (attention in (0, 1)),
    amount_minor bigint not null check (amount_minor > 0),
    currency text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode, transaction_id) references transactions (organization_id, mode, id)
);
create index refunds_by_status on refunds (organization_id, mode, status, id);
create index refunds_by_transaction on refunds (organization_id, mode, transaction_id, id);
create index refunds_for_attention on refunds (organization_id, mode, attention, id) where attention > 0;

-- Which refund moved the money; null: the payment itself.
alter table ledger_postings add column refund_id text;
-- What makes the merchant's balance.
create index ledger_postings_of_merchant on ledger_postings (organization_id, mode, currency, created_at)
    where account = 'merchant';

-- Locked before each debit of a merchant's balance, so that two of them never spend the same money. Credits leave it alone.
create table balance_guards (
    organization_id text not null,
    mode text not null,
    currency text not null,
    debits bigint not null check (debits >= 0),
    primary key (organization_id, mode, currency)
);

create table simulated_refunds (
    organization_id text not null,
    mode text not null check (mode = 'test'),
    refund_id text not null,
    version bigint not null,
    doc text not null,
    transaction_id text not null,
    -- What leaves the simulated wallet, in truth: 0 where nothing does.
    paid_back_minor bigint not null check (paid_back_minor >= 0),
    created_at bigint not null,
    primary key (organization_id, mode, refund_id)
);
create index simulated_refunds_by_transaction on simulated_refunds (organization_id, mode, transaction_id, refund_id);
