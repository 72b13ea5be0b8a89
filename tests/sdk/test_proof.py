"""The harness of the proof programme: what it counts, and when it stops."""

import pytest

import proof
from proof import Proof


@pytest.fixture
def clock(monkeypatch):
    """What the time is, in seconds."""
    for name in ("TIER", "PROOF_COUNT", "PROOF_LEAST", "PROOF_FILE"):
        monkeypatch.delenv(f"DALASI_{name}", raising=False)
    now = [0.0]
    monkeypatch.setattr(proof.time, "monotonic", lambda: now[0])
    return now


def played(row, clock, seconds):
    for _ in row.cases():
        clock[0] += seconds
    row.finish()
    return row.reached


def test_who_has_time_reaches_the_count(clock):
    assert played(Proof("X1", "sqlite", 20), clock, 1) == 20


def test_the_gate_ends_with_its_time(clock):
    assert played(Proof("X1", "sqlite", 20), clock, 10) == 5


def test_a_tenth_is_reached_however_long_it_takes(clock):
    assert played(Proof("X1", "sqlite", 40), clock, 100) == 4


def test_who_stops_before_the_time_and_the_count_fails(clock):
    row = Proof("X1", "sqlite", 20)
    next(row.cases())
    with pytest.raises(AssertionError, match="0 of 20 reached"):
        row.finish()


def test_who_ends_by_itself_has_no_excuse_in_the_time(clock):
    row = Proof("X1", "sqlite", 20)
    clock[0], row.reached = 100.0, 19
    with pytest.raises(AssertionError, match="19 of 20 reached"):
        row.finish()


def test_whoever_asks_for_a_count_gets_it(clock, monkeypatch):
    monkeypatch.setenv("DALASI_PROOF_COUNT", "30")
    assert played(Proof("X1", "sqlite", 20), clock, 10) == 30
