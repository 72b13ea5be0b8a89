-- By whose they are and what they are about, so that each is found past all that the others are owed.
create index mails_due_of_merchant on mails (mode, kind, organization_id, next_try_at, id) where status = 'pending';
