-- Files that were made of invoices and receipts. Each can be made again at any time.
create table documents (
    organization_id text not null,
    mode text not null,
    object_id text not null,
    -- A digest of all that the file shows: that of another edition is out of date.
    edition text not null,
    status text not null check (status in ('completed', 'failed')),
    -- Dropped some time after it was made.
    file blob,
    -- How often making it failed, ever.
    failures bigint not null check (failures >= 0),
    last_error text,
    -- When it was made last.
    generated_at bigint,
    check ((status = 'failed') = (last_error is not null)),
    check (status = 'failed' or generated_at is not null),
    check (status = 'completed' or file is null),
    primary key (organization_id, mode, object_id)
);
create index documents_with_file on documents (generated_at) where file is not null;
