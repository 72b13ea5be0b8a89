"""Row D9: what outsiders write is shown as text and is nothing else, on every page, in every mail, file and answer. Counted
are cells: one payload in one output."""

from random import Random

from hostile import PAYLOADS, Pair, generated
from mailserver import Mail
from output_places import Places
from outputs import answer_faults, line_faults, mail_faults
from proof import Proof
from server import PLAIN

GATE_CELLS = 1_500


def compared(benign, hostile, pair):
    if isinstance(benign, Mail):
        return mail_faults(benign, hostile, pair)
    if isinstance(benign, str):
        return line_faults(benign, hostile, pair)
    return answer_faults(benign, hostile, pair)


def payloads(proof):
    """(seed, payload): the kinds, then what is put together of them."""
    for payload in PAYLOADS:
        yield "a kind", payload
    seed = proof.seed
    while True:
        yield seed, generated(Random(seed))
        seed += 1


def test_what_outsiders_write_is_text(new_server, mail_server, watch, database):
    server = new_server(options=PLAIN + mail_server.options)
    # Whether answers are as described is another row's question, and the half of the time.
    watch.servers.remove(server)
    refused, kept = 0, {}
    with Proof("D9", database, GATE_CELLS) as proof:
        for number, (seed, payload) in enumerate(payloads(proof)):
            if proof.reached >= proof.wanted:
                break
            pair, locale = Pair(payload), ("en", "fr")[number % 2]
            if (pair.shape, locale) not in kept:
                kept[pair.shape, locale] = Places(server, mail_server, pair.benign, pair.benign, locale).visit()
            benign = kept[pair.shape, locale]
            hostile = Places(server, mail_server, pair.hostile, pair.benign, locale).visit()
            for fault in benign.faults + hostile.faults:
                proof.violation(f"{payload[:80]!r} ({seed}): {fault}")
            refused += len(hostile.refused)
            for name, output in benign.outputs.items():
                for fault in compared(output, hostile.outputs[name], pair) if name in hostile.outputs else ["is not there"]:
                    proof.violation(f"{payload[:80]!r} ({seed}), {name}: {fault}")
                proof.reached += 1
        print(f"{number} payloads, {len(benign.outputs)} outputs each; {refused} fields refused one")
