-- With what breaks a tie: invoices that are due on one day are due at its last second, and the first few of them are found without
-- sorting the rest.
drop index jobs_due;
create index jobs_due on jobs (lane, due_at, kind, object_id);
