-- In whose money a check of the books has seen a fault: until a check of all of it has seen none, no process hands a refund of theirs
-- to a rail. Both names are empty where nobody knows whose it is: then it is everybody's.
create table doubts (
    organization_id text not null,
    mode text not null,
    -- The first fault that was seen.
    found text not null,
    since bigint not null,
    -- When one was seen last: a check ends only what nobody has seen again since it began.
    seen_at bigint not null,
    primary key (organization_id, mode)
);
