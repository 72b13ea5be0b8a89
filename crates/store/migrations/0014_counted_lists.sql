-- With the time at which the clock takes a row out of a list, so that counting the list reads the index alone.
drop index checkouts_by_status;
create index checkouts_by_status on checkouts (organization_id, mode, status, id, deadline_at);
drop index invoices_by_status;
create index invoices_by_status on invoices (organization_id, mode, status, id, overdue_at);
drop index payment_links_by_status;
create index payment_links_by_status on payment_links (organization_id, mode, status, id, expiration_at);
