-- A kept answer may hold a client or webhook secret: it is sealed with a key that the database doesn't have. Answers of
-- before stay in `body` until they are forgotten; one that nobody can ask for again is in neither.
alter table idempotency_keys add column sealed_body blob;
