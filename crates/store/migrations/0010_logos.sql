-- Merchants' pictures, each made anew of what their addresses gave. Receipts go on showing the one of their day.
create table logos (
    organization_id text not null,
    mode text not null,
    -- Of the file, SHA-256 in hexadecimal.
    digest text not null,
    -- PNG.
    file blob not null,
    created_at bigint not null,
    primary key (organization_id, mode, digest)
);
