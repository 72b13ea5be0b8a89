create table organizations (
    organization_id text not null,
    mode text not null check (mode in ('test', 'live')),
    id text not null check (id = organization_id),
    version bigint not null,
    doc text not null,
    name text not null,
    created_at bigint not null,
    primary key (organization_id, mode)
);

create table api_keys (
    organization_id text not null,
    mode text not null,
    id text not null,
    version bigint not null,
    doc text not null,
    digest text not null unique,
    revoked_at bigint,
    created_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);

create table signing_keys (
    kid text not null primary key,
    wrapped text not null,
    created_at bigint not null,
    active_from bigint not null,
    retired_at bigint
);

create table checkouts (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in ('pending', 'completed', 'expired', 'cancelled')),
    amount_minor bigint not null check (amount_minor > 0),
    currency text not null,
    client_secret_digest text not null unique,
    customer_id text,
    reference text,
    -- When the timer looks again: the expiry, or later while the provider has an attempt.
    deadline_at bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    foreign key (organization_id, mode) references organizations (organization_id, mode)
);
create index checkouts_by_status on checkouts (organization_id, mode, status, id);
create index checkouts_by_reference on checkouts (organization_id, mode, reference, id) where reference is not null;
create index checkouts_by_customer on checkouts (organization_id, mode, customer_id, id) where customer_id is not null;

create table payment_sessions (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in ('pending', 'processing', 'succeeded', 'failed', 'cancelled')),
    object_type text not null,
    object_id text not null,
    amount_minor bigint not null check (amount_minor > 0),
    currency text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id)
);
-- At most one open session for what can be paid once.
create unique index payment_sessions_open on payment_sessions (organization_id, mode, object_type, object_id)
    where status in ('pending', 'processing') and object_type in ('checkout', 'invoice');

create table transactions (
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
    payment_session_id text not null,
    object_type text not null,
    object_id text not null,
    payment_method text not null,
    rail text not null,
    rail_reference text,
    amount_minor bigint not null check (amount_minor > 0),
    fee_minor bigint not null check (fee_minor >= 0 and fee_minor <= amount_minor),
    currency text not null,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (organization_id, mode, id),
    unique (organization_id, mode, payment_session_id)
);
create index transactions_by_status on transactions (organization_id, mode, status, id);
create index transactions_by_object on transactions (organization_id, mode, object_id, id);
create index transactions_for_attention on transactions (organization_id, mode, attention, id) where attention > 0;

-- One row per posting. Debits are positive, credits negative; an entry's lines sum to zero.
create table ledger_postings (
    organization_id text not null,
    mode text not null,
    entry_id text not null,
    line bigint not null,
    transaction_id text not null,
    account text not null,
    currency text not null,
    amount_minor bigint not null check (amount_minor <> 0),
    created_at bigint not null,
    primary key (organization_id, mode, entry_id, line)
);
create index ledger_postings_by_transaction on ledger_postings (organization_id, mode, transaction_id, entry_id);

create table events (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    type text not null,
    object_id text not null,
    sequence bigint not null check (sequence > 0),
    body text not null,
    created_at bigint not null,
    primary key (organization_id, mode, id),
    unique (organization_id, mode, object_id, sequence)
);
create index events_by_type on events (organization_id, mode, type, id);

-- Committed events that have no place in the log yet.
create table events_unlogged (
    id text not null primary key,
    organization_id text not null,
    mode text not null
);

create table event_log (
    organization_id text not null,
    mode text not null,
    log_no bigint not null,
    event_id text not null unique,
    primary key (organization_id, mode, log_no)
);

create table webhook_endpoints (
    organization_id text not null,
    mode text not null,
    id text not null unique,
    version bigint not null,
    doc text not null,
    status text not null check (status in ('active', 'inactive')),
    created_at bigint not null,
    primary key (organization_id, mode, id)
);

create table webhook_deliveries (
    organization_id text not null,
    mode text not null,
    event_id text not null,
    endpoint_id text not null,
    object_id text not null,
    sequence bigint not null,
    status text not null check (status in ('pending', 'delivered', 'failed')),
    -- Sent again by hand: waits for nobody.
    by_hand bigint not null check (by_hand in (0, 1)),
    attempts bigint not null,
    round_attempts bigint not null,
    next_retry_at bigint,
    last_status_code bigint,
    last_error text,
    lease_until bigint not null,
    lease_token bigint not null,
    primary key (organization_id, mode, event_id, endpoint_id)
);
create index webhook_deliveries_due on webhook_deliveries (next_retry_at) where status = 'pending';
create index webhook_deliveries_open on webhook_deliveries (endpoint_id, object_id, sequence) where status = 'pending';

create table jobs (
    kind text not null,
    object_id text not null,
    organization_id text not null,
    mode text not null,
    due_at bigint not null,
    attempts bigint not null,
    lease_until bigint not null,
    lease_token bigint not null,
    primary key (kind, object_id)
);
create index jobs_due on jobs (due_at);

create table idempotency_keys (
    organization_id text not null,
    mode text not null,
    -- Whose keys: a merchant's, or those of one payment object's visitors.
    space text not null,
    idempotency_key text not null,
    fingerprint blob not null,
    state text not null check (state in ('running', 'finished')),
    status bigint,
    body text,
    created_at bigint not null,
    primary key (organization_id, mode, space, idempotency_key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);

create table simulated_payments (
    organization_id text not null,
    mode text not null check (mode = 'test'),
    transaction_id text not null,
    version bigint not null,
    doc text not null,
    token_digest text not null unique,
    created_at bigint not null,
    primary key (organization_id, mode, transaction_id)
);

create table audit_log (
    organization_id text not null,
    mode text not null,
    id text not null,
    action text not null,
    object_id text not null,
    actor text not null,
    reason text,
    created_at bigint not null,
    primary key (organization_id, mode, id)
);
