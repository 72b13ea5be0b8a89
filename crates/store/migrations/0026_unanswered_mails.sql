-- How often a message was sent whole and no answer came.
alter table mails add column unanswered bigint not null default 0;
