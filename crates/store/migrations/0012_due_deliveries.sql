-- With the endpoint, so that those of an endpoint that can take no more are passed over in the index.
create index webhook_deliveries_due_of_endpoints on webhook_deliveries (next_retry_at, endpoint_id) where status = 'pending';
drop index webhook_deliveries_due;
