"""The ledger and its proof, checked here by other code than the server's: hashlib and another Ed25519."""

import base64
import hashlib
import json
from decimal import Decimal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import pytest
from checks import data, eventually, faults, refusal
from server import Api

ABSENT = "txn_01h455vb4pex5vsknk084sn02q"


def hashed(kind, *parts):
    return hashlib.sha256(bytes([kind]) + b"".join(parts)).digest()


def leaf(entry):
    return hashed(0, json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())


def root_of(hash_, index, size, path):
    """RFC 9162 §2.1.3.2, written from the document."""
    fn, sn, node = index, size - 1, hash_
    for sibling in path:
        assert sn > 0, "the path is too long"
        if fn & 1 or fn == sn:
            node = hashed(1, sibling, node)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = hashed(1, node, sibling)
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0, "the path is too short"
    return node


def verified(batch, keys):
    """What a batch says, if its signature is good."""
    statement = json.loads(batch["statement"])
    [key] = [key for key in keys if key["kid"] == statement["key_id"]]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    public.verify(bytes.fromhex(batch["signature"]), b"dalasi ledger batch\0" + batch["statement"].encode())
    return statement


@pytest.fixture
def sealed(api, paid):
    """A paid checkout whose transaction is sealed; its transaction and the proof."""
    transaction = paid()["transaction"]["id"]

    def found():
        proof = data(api.get("/v1/ledger/proof", params={"transaction_id": transaction}))
        return proof if proof["transaction"]["entries"] and not proof["transaction"]["unsealed_entries"] else None

    return transaction, eventually(found)


def test_accounts_sum_to_zero_and_follow_a_payment(api, paid):
    def balances():
        accounts = data(api.get("/v1/ledger/accounts"))["accounts"]
        for account in accounts:
            assert Decimal(account["debits"]) - Decimal(account["credits"]) == Decimal(account["balance"]), account
        sums = {}
        for account in accounts:
            sums[account["currency"]] = sums.get(account["currency"], 0) + Decimal(account["balance"])
        assert set(sums.values()) <= {0}, sums
        return {(account["account"], account["currency"]): Decimal(account["balance"]) for account in accounts}

    paid()
    before = balances()
    paid(amount="100.00")
    after = balances()
    grown = {account: after[account] - before[account] for account in after}
    rail, merchant, fees = ("rail_clearing:simulator", "GMD"), ("merchant", "GMD"), ("fees", "GMD")
    assert (grown[rail], grown[merchant], grown[fees]) == (Decimal(100), Decimal("-97.50"), Decimal("-2.50"))


def test_entries_are_listed_and_found_by_their_transaction(api, paid):
    transaction = paid()["transaction"]["id"]
    newest = data(api.get("/v1/ledger/entries", params={"limit": 1}))
    assert (newest["items"][0]["transaction_id"], newest["limit"]) == (transaction, 1)
    [entry] = data(api.get("/v1/ledger/entries", params={"transaction_id": transaction}))["items"]
    assert [(posting["account"], posting["side"], posting["amount"]) for posting in entry["postings"]] == [
        ("rail_clearing:simulator", "debit", "100.00"),
        ("merchant", "credit", "97.50"),
        ("fees", "credit", "2.50"),
    ]
    further = data(api.get("/v1/ledger/entries", params={"after": entry["id"], "limit": 2}))["items"]
    assert all(older["id"] < entry["id"] for older in further)
    nothing = data(api.get("/v1/ledger/entries", params={"end_date": "2020-01-01"}))
    assert (nothing["items"], nothing["total"]) == ([], 0)
    assert data(api.get("/v1/ledger/entries", params={"transaction_id": ABSENT}))["items"] == []
    wrong = api.get("/v1/ledger/entries", params={"limit": "0", "start_date": "soon", "account": "fees"})
    assert set(faults(wrong)) == {"limit", "start_date", "account"}


def test_a_payment_is_proven_by_other_code(sealed):
    transaction, proof = sealed
    keys = proof["keys"]["keys"]
    before = None
    for batch in proof["batches"]:
        statement = verified(batch, keys)
        if before:
            assert statement["previous"] == hashlib.sha256(before["statement"].encode()).hexdigest()
            last = json.loads(before["statement"])
            assert (statement["batch"], statement["first"]) == (last["batch"] + 1, last["last"] + 1)
        before = batch
    assert json.loads(before["statement"])["batch"] == proof["batch_count"]
    [inclusion] = proof["transaction"]["entries"]
    assert inclusion["entry"]["transaction_id"] == transaction
    statement = verified(inclusion["batch"], keys)
    index, size = inclusion["entry"]["log_no"] - statement["first"], statement["last"] - statement["first"] + 1
    path = [bytes.fromhex(sibling) for sibling in inclusion["path"]]
    assert root_of(leaf(inclusion["entry"]), index, size, path).hex() == statement["root"]
    forged = inclusion["entry"] | {"transaction_id": ABSENT}
    assert root_of(leaf(forged), index, size, path).hex() != statement["root"]
    tampered = inclusion["batch"]["statement"].replace('"merchant"', '"merchand"')
    with pytest.raises(InvalidSignature):
        verified(inclusion["batch"] | {"statement": tampered}, keys)


def test_the_trial_balance_is_what_was_signed(sealed):
    _, proof = sealed
    assert json.loads(proof["batches"][-1]["statement"])["balances"] == proof["trial_balance"]["sealed"]
    for part in proof["trial_balance"].values():
        assert sum(Decimal(account["debits"]) - Decimal(account["credits"]) for account in part) == 0
    assert len(proof["not_covered"]) == 3


def test_the_chain_is_read_from_its_beginning(api, sealed):
    first = data(api.get("/v1/ledger/proof", params={"from_batch": 1, "limit": 1}))
    [batch] = first["batches"]
    statement = json.loads(batch["statement"])
    assert (statement["batch"], statement["first"], statement["previous"]) == (1, 1, None)
    assert first["transaction"] is None
    beyond = data(api.get("/v1/ledger/proof", params={"from_batch": first["batch_count"] + 1000}))
    assert beyond["batches"] == []


def test_what_is_not_there_or_not_ones_own_is_refused(server, api, anonymous, publishable, sealed):
    transaction, _ = sealed
    live = Api(server.url, server.keys["live"]["secret"])
    assert faults(api.get("/v1/ledger/proof", params={"transaction_id": ABSENT})) == {"transaction_id": "not_found"}
    assert faults(api.get("/v1/ledger/proof", params={"transaction_id": "7"})) == {"transaction_id": "not_found"}
    assert faults(live.get("/v1/ledger/proof", params={"transaction_id": transaction})) == {"transaction_id": "not_found"}
    assert set(faults(api.get("/v1/ledger/proof", params={"from_batch": "0", "limit": "x"}))) == {"from_batch", "limit"}
    assert data(live.get("/v1/ledger/entries"))["items"] == []
    assert data(live.get("/v1/ledger/proof"))["batch_count"] == 0
    for path in ("accounts", "entries", "proof"):
        refusal(anonymous.get(f"/v1/ledger/{path}"), 401, "authentication_required")
        refusal(publishable.get(f"/v1/ledger/{path}"), 403, "secret_key_required")
