-- When a reader is told that it expired, whether or not the timer ran; null where nothing runs out. It stands in the index as
-- in those of the other lists that the clock decides.
alter table transactions add column expires_at bigint;
drop index transactions_by_status;
create index transactions_by_status on transactions (organization_id, mode, status, id, expires_at);
