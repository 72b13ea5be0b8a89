-- When somebody last used it, to within an hour; beside the document, because using a key changes nothing of it.
alter table api_keys add column last_used_at bigint;
