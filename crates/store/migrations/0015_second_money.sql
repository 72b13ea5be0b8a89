-- Of what came twice nobody takes a fee, as the ledger always said.
update transactions set fee_minor = 0 where attention = 2;
