"""Row D9: what outsiders write is text and nothing else, on every page, in every mail, file and answer, and at the
operator's terminal. Counted are cells: one payload in one output."""

import copy
from html import escape
from random import Random
from types import SimpleNamespace
from urllib.parse import quote, unquote

from requests.structures import CaseInsensitiveDict

from contract import DOCUMENT
from hostile import PAYLOADS, Pair, generated
from mailserver import Mail
from output_places import Places
from outputs import answer_faults, line_faults, mail_faults
from proof import Proof
from server import PLAIN

GATE_CELLS = 1_700
# Seen at fewer positions, a payload was refused or lost rather than shown.
LEAST_SHOWN = 100
# What the description says there is; another kind, such as a table for a spreadsheet, needs its own eyes here.
KINDS = {"application/json", "application/pdf"}


def compared(benign, hostile, pair):
    if isinstance(benign, Mail):
        return mail_faults(benign, hostile, pair)
    if isinstance(benign, str):
        return line_faults(benign, hostile, pair)
    return answer_faults(benign, hostile, pair)


def payloads(proof):
    """(its seed, payload): each kind, then what is put together of pieces."""
    for payload in PAYLOADS:
        yield "a kind", payload
    seed = proof.seed
    while True:
        yield seed, generated(Random(seed))
        seed += 1


def kind(piece):
    return next(payload for payload in PAYLOADS if piece in payload)


def kinds():
    for path in DOCUMENT["paths"].values():
        for operation in path.values():
            for answer in operation["responses"].values():
                yield from answer.get("content", {})


def planted(outputs):
    """(name, the benign output, the same with a defect, its payload): what a template or a writer could forget."""

    def page(name, before, after, payload, **headers):
        answer = outputs[name]
        assert before in answer.text, f"{name} has no {before!r}"
        text = answer.text.replace(before, after, 1)
        altered = SimpleNamespace(
            status_code=answer.status_code,
            headers=CaseInsensitiveDict({**answer.headers, **headers}),
            text=text,
            content=text.encode(),
        )
        return answer, altered, payload

    script, quotes, title, templates = kind("<script>"), kind("onmouseover"), kind("</textarea>"), kind("{{7*7}}")
    link, choice, left = "page of a link", "page of wrong answers", "page that is left"
    yield "a text", *page(link, ">Zqax200x<", f">{script}<", script)
    yield "a comment", *page(link, ">Zqax200x<", f">{kind('<!--')}<", kind("<!--"))
    yield "an entity", *page(link, ">Zqax200x<", f">{kind('&lt;')}<", kind("&lt;"))
    yield "an attribute", *page(choice, 'value="Zqax40x"', f'value="{quotes}"', quotes)
    yield (
        "an attribute that others break out of",
        *page(choice, 'value="Zqax40x"', f'value="{kind("<svg/onload")}"', kind("<svg/onload")),
    )
    yield (
        "an address",
        *page(
            left,
            'data-go="https://shop.example/thanks?x=Zqax200x',
            f'data-go="https://shop.example/thanks?x={quotes}',
            quotes,
        ),
    )
    # Percent signs that are undone once too often, or written once more.
    percent, address = "Q%3cscript%3e%253cZ", "https://shop.example/thanks?x=Zqax200"
    paid = "page that is paid"
    for how, name, before, after, payload in [
        ("that is decoded", paid, "q", script, script),
        ("of percent signs that is decoded", paid, "q", percent, percent),
        ("that is decoded twice", paid, "q", unquote(percent), percent),
        ("that is quoted twice", paid, "q", quote(quote(percent, safe=""), safe=""), percent),
        ("sent raw that is decoded", left, "x", unquote(percent), percent),
        ("sent raw that is quoted", left, "x", quote(percent, safe=""), percent),
    ]:
        yield f"an address {how}", *page(name, address + before, escape(address[:-7] + after), payload)
    yield "a title", *page(link, "</title>", f"{title}</title>", title)
    yield "a style", *page(link, "</style>", f"{kind('url(')}</style>", kind("url("))
    yield (
        "a template that is filled in twice",
        *page(link, ">Zqax200x<", f">{templates.replace('{{7*7}}', '49')}<", templates),
    )
    noscript = kind("<noscript>")
    yield (
        "a page without script",
        *page("page that is paid", "</head>", f"<noscript><p title='{noscript}'></noscript></head>", noscript),
    )
    yield "a scheme", *page(left, "https://shop.example/thanks?x=Zqax200x", "javascript:alert(1)", script)
    yield "a header", *page(link, "<", "<", script, **{"X-Injected": "yes"})
    policy = outputs[link].headers["Content-Security-Policy"]
    yield (
        "a policy",
        *page(link, "<", "<", script, **{"Content-Security-Policy": policy + "; script-src 'unsafe-inline'"}),
    )
    yield "a JSON text", *page("customer", '"Zqax200x"', '"Zqax200x","admin":"yes"', script)

    mail = next(output for name, output in outputs.items() if name.startswith("mail with INV"))
    lines = kind("Bcc")

    def sent(change, payload):
        envelope = SimpleNamespace(mail_from=mail.sender, rcpt_tos=list(mail.recipients), original_content=mail.bytes)
        change(envelope)
        return mail, Mail(envelope), payload

    def add_header(envelope):
        envelope.original_content = mail.bytes.replace(b"\r\nSubject:", b"\r\nBcc: evil@evil.example\r\nSubject:", 1)

    def end_headers(envelope):
        envelope.original_content = mail.bytes.replace(b"\r\nSubject: ", b"\r\nSubject: Awa\r\n\r\n", 1)

    def unescape(envelope):
        at = mail.bytes.index(b"text/html")
        envelope.original_content = mail.bytes[:at] + mail.bytes[at:].replace(
            b">Zqax200x<", b">" + script.replace("=", "=3D").encode() + b"<", 1
        )

    def change_subject(envelope):
        envelope.original_content = mail.bytes.replace(
            b"from Zqax200x", b"from =?utf-8?q?=0D=0ABcc:_evil@evil.example?=", 1
        )

    yield "a mail's header", *sent(add_header, lines)
    yield "a mail's headers that end early", *sent(end_headers, lines)
    yield "a mail's recipient", *sent(lambda envelope: envelope.rcpt_tos.append("evil@evil.example"), lines)
    yield "a mail's page", *sent(unescape, script)
    yield "a mail's encoded word", *sent(change_subject, kind("=?utf-8"))

    file = outputs["file of an invoice"]

    def drawn(before, after, payload):
        assert before in file.content, f"the file has no {before!r}"
        content = file.content.replace(before, after, 1)
        return file, SimpleNamespace(status_code=200, headers=file.headers, content=content), payload

    strings, more = kind("/JS"), kind("xref")
    yield "a PDF's string", *drawn(b"(Dalasi)", b"(" + strings.encode() + b")", strings)
    yield "a PDF's end of a string", *drawn(b"(Dalasi)", b"(" + more.encode() + b")", more)
    yield "a PDF's action", *drawn(b"/Type/Catalog", b"/Type/Catalog/OpenAction<</S/JavaScript/JS(x)>>", strings)
    yield "a PDF's address", *drawn(b"/URI(", b"/URI(http://evil.example)/URI(", more)

    printed = outputs["organization for a program"]
    yield "a terminal's command", printed, printed.replace("Zqax200x", kind("\u001b[2J"), 1), kind("\u001b[2J")
    yield "a line at a terminal", printed, printed.replace("Zqax200x", lines, 1), lines


def differences(server, mail_server, pair):
    """What a payload makes of what both say, which it should not."""
    benign, hostile = (Places(server, mail_server, words, pair.benign, "en").visit().outputs for words in (pair.benign, pair.hostile))
    for name in benign.keys() & hostile.keys():
        yield from compared(benign[name], hostile[name], pair)


def test_what_outsiders_write_is_text(new_server, mail_server, watch, database):
    server = new_server(options=PLAIN + mail_server.options)
    # Whether answers are as described is another row's question, and half of the time.
    watch.servers.remove(server)
    refused, shown, kept = 0, [], {}
    with Proof("D9", database, GATE_CELLS) as proof:
        if unknown := set(kinds()) - KINDS:
            proof.violation(f"no place is known of {sorted(unknown)}")
        for number, (seed, payload) in enumerate(payloads(proof)):
            if not proof.goes_on():
                break
            pair, locale = Pair(payload), ("en", "fr")[number % 2]
            of = (pair.shape, locale)
            if of not in kept:
                kept[of] = Places(server, mail_server, pair.benign, pair.benign, locale).visit()
            benign = kept[of]
            hostile = Places(server, mail_server, pair.hostile, pair.benign, locale).visit()
            if number == 0:
                for name, output, altered, planted_payload in planted(benign.outputs):
                    of_planted = Pair(planted_payload)
                    assert not list(compared(output, copy.copy(output), of_planted)), f"{name} is itself"
                    proof.control(f"an unescaped value in {name}", bool(list(compared(output, altered, of_planted))))
                absent = Pair(payload)
                assert not [fault for output in benign.outputs.values() for fault in compared(output, output, absent)]
                proof.control("a payload that is shown nowhere", absent.shown < LEAST_SHOWN)
                careless = new_server(options=PLAIN + mail_server.options, planted="page_unescaped")
                proof.control("page_unescaped", any(differences(careless, mail_server, Pair(kind("<script>")))))
            for fault in benign.faults + hostile.faults:
                proof.violation(f"{payload[:80]!r} ({seed}): {fault}")
            for name in sorted(set(benign.outputs) | set(hostile.outputs)):
                if name not in benign.outputs or name not in hostile.outputs:
                    proof.violation(f"{payload[:80]!r} ({seed}): only one of both has {name}")
                    continue
                for fault in compared(benign.outputs[name], hostile.outputs[name], pair):
                    proof.violation(f"{payload[:80]!r} ({seed}), {name}: {fault}")
                proof.reached += 1
            refused += len(hostile.refused)
            shown.append(pair.shown)
            if pair.shown < LEAST_SHOWN:
                proof.violation(f"{payload[:80]!r} ({seed}): it is shown at {pair.shown} positions only")
        places = len(benign.outputs)
        print(f"{len(shown)} payloads, {places} outputs; shown at {sum(shown)} positions, refused by {refused} fields")
