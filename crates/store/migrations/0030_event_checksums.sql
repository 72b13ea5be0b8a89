-- The CRC-32 of a body, so that one with a flipped bit is told from the one that was written. Events of before have none; a document
-- holds its own.
alter table events add column body_crc32 bigint;
