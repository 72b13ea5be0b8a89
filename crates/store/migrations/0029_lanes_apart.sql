-- What calls a rail waits neither behind all that runs out at one moment nor behind anything of test mode.
create table jobs_rebuilt (
    kind text not null,
    object_id text not null,
    organization_id text not null,
    mode text not null,
    due_at bigint not null,
    lane bigint not null check (lane in (0, 1, 2, 3, 4)),
    attempts bigint not null,
    lease_until bigint not null,
    lease_token bigint not null,
    primary key (kind, object_id)
);
insert into jobs_rebuilt (kind, object_id, organization_id, mode, due_at, lane, attempts, lease_until, lease_token)
select kind, object_id, organization_id, mode, due_at,
    case
        when lane <> 0 then lane
        when mode = 'test' then 4
        when kind in ('expire_checkout', 'overdue_invoice', 'expire_session', 'expire_payment_link') then 3
        else 0
    end,
    attempts, lease_until, lease_token
from jobs;
drop table jobs;
alter table jobs_rebuilt rename to jobs;
create index jobs_due on jobs (lane, due_at, kind, object_id);
