-- By mode, so that what is due in one is found past all that is due in the other.
create index mails_due_of_mode on mails (mode, next_try_at, id) where status = 'pending';
drop index mails_due;
