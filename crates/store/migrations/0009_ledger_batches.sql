-- Committed entries that no batch holds yet.
create table ledger_unsealed (
    organization_id text not null,
    mode text not null,
    entry_id text not null,
    primary key (organization_id, mode, entry_id)
);
insert into ledger_unsealed (organization_id, mode, entry_id)
select organization_id, mode, entry_id
from ledger_postings
where line = 1;

-- The place of each sealed entry. It is given after the commit, so that an entry that commits late is not skipped.
create table ledger_log (
    organization_id text not null,
    mode text not null,
    log_no bigint not null check (log_no > 0),
    entry_id text not null unique,
    primary key (organization_id, mode, log_no)
);

-- Signed statements over batches of entries, each naming the one before.
create table ledger_batches (
    organization_id text not null,
    mode text not null,
    batch_no bigint not null check (batch_no > 0),
    first_log_no bigint not null,
    last_log_no bigint not null check (last_log_no >= first_log_no),
    statement text not null,
    signature text not null,
    -- Of the key that signed: a check needs no secret, and a lost key row loses no proof. In base64url.
    public_key text not null,
    primary key (organization_id, mode, batch_no),
    unique (organization_id, mode, last_log_no)
);
