-- When what an event shows of it last changed; null: since the event was made.
alter table webhook_deliveries add column updated_at bigint;
