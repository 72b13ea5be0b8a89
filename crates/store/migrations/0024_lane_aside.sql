-- What shows already doesn't wait behind files that are made ahead.
create table jobs_rebuilt (
    kind text not null,
    object_id text not null,
    organization_id text not null,
    mode text not null,
    due_at bigint not null,
    lane bigint not null check (lane in (0, 1, 2)),
    attempts bigint not null,
    lease_until bigint not null,
    lease_token bigint not null,
    primary key (kind, object_id)
);
insert into jobs_rebuilt (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
select kind, object_id, organization_id, mode, due_at,
    case when kind in ('fetch_logo', 'give_up_deliveries') then 2 else lane end,
    attempts, lease_until, lease_token
from jobs;
drop table jobs;
alter table jobs_rebuilt rename to jobs;
create index jobs_due on jobs (lane, due_at);
