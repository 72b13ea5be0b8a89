-- Of two indexes of what waits, each with a condition of its own: a statement names the one that it means and can go by no other.
-- Where a database believes that next to nothing waits, as it mostly does when something begins to, both seemed as good to it, and
-- by the wrong one it read all that waits for an endpoint, or of a mode, for each delivery or mail.
drop index webhook_deliveries_open;
create index webhook_deliveries_open on webhook_deliveries (endpoint_id, object_id, sequence) where '' || status = 'pending';
drop index mails_due_of_merchant;
create index mails_due_of_merchant on mails (mode, kind, organization_id, next_try_at, id) where '' || status = 'pending';
