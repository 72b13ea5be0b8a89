-- With all that is read where a balance is added up: what a merchant was paid within the settlement delay may be millions of
-- postings, and each was looked for in the table. What the account is, the condition says.
drop index ledger_postings_of_merchant;
create index ledger_postings_of_merchant on ledger_postings (organization_id, mode, currency, created_at, amount_minor, refund_id)
    where account = 'merchant';
