-- With the time at which the clock takes a row out of a list, so that counting the list reads the index alone.
drop index checkouts_by_status;
create index checkouts_by_status on checkouts (organization_id, mode, status, id, deadline_at);
drop index invoices_by_status;
create index invoices_by_status on invoices (organization_id, mode, status, id, overdue_at);
drop index payment_links_by_status;
create index payment_links_by_status on payment_links (organization_id, mode, status, id, expiration_at);

-- By endpoint: what waits for one that can take no more is never passed over, however much it is.
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_retry_at) where status = 'pending';
drop index webhook_deliveries_due_of_endpoints;
