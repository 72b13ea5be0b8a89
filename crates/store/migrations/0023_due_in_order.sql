-- With what breaks a tie: of many that are due since the same moment the first few are found without sorting the rest.
drop index webhook_deliveries_due;
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_retry_at, event_id) where status = 'pending';
