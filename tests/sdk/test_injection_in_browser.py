"""Row D9.browser: what outsiders write is text to a browser too. It reads every page with a hostile text as the same page with
a harmless one, runs nothing of it, asks nobody for anything because of it, and its policy has nothing to stop. Counted are
payloads, each on every page, with JavaScript and without."""

from random import Random
from types import SimpleNamespace

import pytest
from requests.structures import CaseInsensitiveDict

from browser import why_not, windows
from hostile import PAYLOADS, Pair, generated
from output_places import Places
from outputs import tree_faults
from proof import Proof
from server import PLAIN

GATE_PAYLOADS = 1
POLICY = "Content-Security-Policy"


def payloads(proof):
    """(seed, payload): the seeds of a turn go on where those of the last one ended, first through each kind."""
    for seed, random in proof.cases():
        before = sum(proof.earlier("payloads"))
        place = before + seed - proof.seed
        yield seed, PAYLOADS[place] if place < len(PAYLOADS) else generated(random)


def pages(places):
    return {
        name: output
        for name, output in places.outputs.items()
        if not isinstance(output, str) and "text/html" in getattr(output, "headers", {}).get("Content-Type", "")
    }


def looked_at(shown, window):
    return {name: window.see(page) for name, page in shown.items()}


def faults(benign, hostile, pair):
    yield from hostile.faults
    yield from tree_faults((benign.nodes, 0), (hostile.nodes, 0), pair)


def planted(page, with_script):
    """(name, the page with a defect, what of it must be told): of a page of a link with a harmless text."""

    def altered(before, after, has_policy):
        assert before in page.text, before
        text = page.text.replace(before, after, 1)
        headers = CaseInsensitiveDict(page.headers)
        if not has_policy:
            del headers[POLICY]
        return SimpleNamespace(
            url=page.url, status_code=page.status_code, headers=headers, text=text, content=text.encode()
        )

    text = ">Zqax200x<"
    script, picture = "<script>alert(1)</script>", "<img src=//evil.example/x>"
    yield "an element", altered(text, "><b>Zqax200x</b><", True), "tree"
    yield "an address of others", altered(text, f">{picture}<", False), "evil.example"
    yield "an address of others that its policy stops", altered(text, f">{picture}<", True), "policy"
    if with_script:
        yield "a script", altered(text, f">{script}<", False), "dialog"
        yield "a script that its policy stops", altered(text, f">{script}<", True), "policy"
        # No reader of the source can see this one.
        undone = (
            "<script>for (const it of document.body.querySelectorAll(':not(script)'))"
            " if (!it.children.length) it.innerHTML = it.textContent</script></body>"
        )
        escaped = altered(text, ">&lt;img src=x onerror=alert(1)&gt;<", False)
        escaped.text = escaped.text.replace("</body>", undone, 1)
        escaped.content = escaped.text.encode()
        yield "an own script that makes elements of texts", escaped, "dialog"


def test_what_outsiders_write_is_text_to_a_browser(new_server, mail_server, watch, database):
    if database != "sqlite":
        pytest.skip("no page is another one for the database")
    proof = Proof("D9.browser", database, GATE_PAYLOADS)
    if reason := why_not():
        return proof.not_run(reason)
    server = new_server(options=PLAIN + mail_server.options)
    watch.servers.remove(server)
    kept, shown = {}, []
    with proof, windows() as opened:
        for seed, payload in payloads(proof):
            pair, locale = Pair(payload), ("en", "fr")[seed % 2]
            of = (pair.shape, locale)
            if of not in kept:
                benign = pages(Places(server, mail_server, pair.benign, pair.benign, locale).visit())
                kept[of] = {how: looked_at(benign, window) for how, window in opened.items()}
                if len(kept) == 1:
                    play_defects(proof, benign["page of a link"], opened, kept[of])
            hostile = pages(Places(server, mail_server, pair.hostile, pair.benign, locale).visit())
            for how, window in opened.items():
                seen = looked_at(hostile, window)
                if set(seen) != set(kept[of][how]):
                    proof.violation(f"seed {seed}: {sorted(set(seen) ^ set(kept[of][how]))} is a page of one of both only")
                for name in sorted(set(seen) & set(kept[of][how])):
                    for fault in kept[of][how][name].faults:
                        proof.violation(f"{name}, {how}: {fault}")
                    for fault in faults(kept[of][how][name], seen[name], pair):
                        proof.violation(f"{payload[:80]!r} (seed {seed}), {name}, {how}: {fault}")
            shown.append(pair.shown)
        proof.note("payloads", proof.reached)
        print(f"{len(shown)} payloads, {len(hostile)} pages, shown at {sum(shown)} positions")


def play_defects(proof, page, opened, benign):
    for how, window in opened.items():
        for name, altered, sign in planted(page, how == "with script"):
            pair = Pair(PAYLOADS[0])
            told = list(faults(benign[how]["page of a link"], window.see(altered), pair))
            proof.control(f"{name}, {how}", any(sign in fault for fault in told))
