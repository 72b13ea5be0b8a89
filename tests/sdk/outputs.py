"""What comes out, taken apart by its reader's rules: an output with a payload beside the same one with a harmless text.
Only text may differ, and only by the payload itself."""

import html
import json
import re
from functools import lru_cache

import html5lib

from hostile import plain, text_fault
from pdf_parts import pdf_faults

# Where an address stands: it may be written in percent signs.
ADDRESSES = {"href", "src", "action", "content", "data-go", "data-back", "data-self", "data-events", "data-status"}
# Of an element: an attribute that is new each time, or follows from how long a text is.
CHANGING = {"nonce", "data-revision", "data-wait", "data-moment"}
SIGNED = {"form_token", "shown", "shown_tag"}
QUIET_HEADERS = {"date", "content-length", "x-request-id", "etag", "last-modified", "message-id"}


@lru_cache(maxsize=400)
def tree(text, scripting):
    """(nodes, number of parse errors): each element with its attributes, each text and comment, with its depth."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"))
    document = parser.parse(text, scripting=scripting)
    nodes = []

    def walk(element, depth):
        if not isinstance(element.tag, str):
            nodes.append((depth, "comment", "", element.text or ""))
        else:
            name = element.tag.replace("{http://www.w3.org/1999/xhtml}", "")
            nodes.append((depth, "element", name, dict(element.attrib)))
            if element.text:
                nodes.append((depth + 1, "text", name, element.text))
            for child in element:
                walk(child, depth + 1)
        if element.tail:
            nodes.append((depth, "text", "after " + str(element.tag)[-12:], element.tail))

    walk(document, 0)
    # Characters that draw nothing, such as in what a choice sends, make a page no other one.
    return nodes, sum(code != "invalid-codepoint" for _, code, _ in parser.errors)


def html_faults(benign, hostile, pair):
    """As a browser with script reads it, and as one without: `noscript` is another thing to each."""
    is_one = not any("<noscript" in text.lower() for text in (benign, hostile))
    for scripting in (True,) if is_one else (True, False):
        yield from tree_faults(tree(benign, scripting), tree(hostile, scripting), pair)


def tree_faults(benign, hostile, pair):
    """Of what `tree` made of two pages, or a browser."""
    (nodes, errors), (others, other_errors) = benign, hostile
    if errors != other_errors:
        yield f"{other_errors} parse errors instead of {errors}"
    shape, other_shape = [node[:3] for node in nodes], [node[:3] for node in others]
    if shape != other_shape:
        differ = (at for at, both in enumerate(zip(shape, other_shape)) if both[0] != both[1])
        at = next(differ, min(len(shape), len(other_shape)))
        yield f"another tree: {others[at : at + 2]} where {nodes[at : at + 2]} was"[:400]
        return
    for at, ((_, kind, name, value), (_, _, _, other)) in enumerate(zip(nodes, others)):
        if kind == "element":
            yield from _attribute_faults(name, value, other, pair)
        elif kind == "comment" or name in ("script", "style"):
            if value != other:
                yield f"another {name or kind}: {other[:120]!r}"
        elif nodes[at - 1][1:3] == ("element", "span") and nodes[at - 1][3].get("class") == "logo":
            pass  # The first letter of a name, whichever it is.
        else:
            # With script, what is in there is source: one text, in which nothing is read.
            is_source = name == "noscript"
            read = html.unescape if is_source else str
            if fault := text_fault(read(value), read(other), pair, is_address=is_source):
                yield f"in {name}: {fault}"


def _attribute_faults(name, benign, hostile, pair):
    if list(benign) != list(hostile):
        yield f"{name} has {sorted(map(str, set(hostile) ^ set(benign)))}"
        return
    for attribute, value in benign.items():
        other = hostile[attribute]
        if attribute in CHANGING or (attribute == "value" and benign.get("name") in SIGNED):
            continue
        if attribute == "d" and name.endswith("path"):  # The address in a QR code.
            continue
        if attribute == "class":
            value, other = value.replace("name much", "name"), other.replace("name much", "name")
        if fault := text_fault(value, other, pair, is_address=attribute in ADDRESSES):
            yield f"{attribute} of {name}: {fault}"


def header_faults(benign, hostile, pair):
    """(name, value) pairs: the same names, and the same values but for the payload."""
    benign = [(name.lower(), value) for name, value in benign if name.lower() not in QUIET_HEADERS]
    hostile = [(name.lower(), value) for name, value in hostile if name.lower() not in QUIET_HEADERS]
    if sorted(name for name, _ in benign) != sorted(name for name, _ in hostile):
        yield f"headers {[name for name, _ in hostile]} instead of {[name for name, _ in benign]}"
        return
    for (name, value), (_, other) in zip(sorted(benign), sorted(hostile)):
        if fault := text_fault(value, other, pair, is_address=name == "location"):
            yield f"{name}: {fault}"


def json_faults(benign, hostile, pair, path="$"):
    if type(benign) is not type(hostile):
        yield f"{path} is {hostile!r} where {benign!r} was"
    elif isinstance(benign, dict):
        if len(benign) != len(hostile):
            yield f"{path} has {sorted(hostile)} instead of {sorted(benign)}"
            return
        for (name, value), (other_name, other) in zip(benign.items(), hostile.items()):
            if fault := text_fault(name, other_name, pair):
                yield f"{path} names {fault}"
            yield from json_faults(value, other, pair, f"{path}.{name[:20]}")
    elif isinstance(benign, list):
        if len(benign) != len(hostile):
            yield f"{path} has {len(hostile)} entries instead of {len(benign)}"
        for value, other in zip(benign, hostile):
            yield from json_faults(value, other, pair, f"{path}[]")
    elif isinstance(benign, str) and (fault := text_fault(benign, hostile, pair, is_address=benign.startswith("http"))):
        yield f"{path}: {fault}"


def mail_faults(benign, hostile, pair):
    """Headers, parts, both texts and the files; nobody else gets it."""
    meant, mailed = ((mail.sender, [plain(one) for one in mail.recipients]) for mail in (benign, hostile))
    if meant != mailed:
        yield f"it goes from {hostile.sender} to {hostile.recipients}"
    parts, other_parts = list(benign.message.walk()), list(hostile.message.walk())
    if [part.get_content_type() for part in parts] != [part.get_content_type() for part in other_parts]:
        yield f"its parts are {[part.get_content_type() for part in other_parts]}"
        return
    for part, other in zip(parts, other_parts):
        try:
            yield from header_faults(shown_headers(part), shown_headers(other), pair)
        except ValueError as fault:
            yield f"its headers are malformed: {fault}"
        if other.defects:
            yield f"it is malformed: {other.defects}"
    yield from html_faults(benign.html, hostile.html, pair)
    if benign.text.count("\n") != hostile.text.count("\n"):
        yield "its text has another number of lines"
    if fault := text_fault(benign.text, hostile.text, pair):
        yield f"its text: {fault}"
    for file, other in zip(benign.files.values(), hostile.files.values()):
        yield from pdf_faults(file, other, pair)


def shown_headers(part):
    """Of an address, the name and the mailbox; without the boundaries, which follow from an id."""
    for name, value in part.items():
        for at, mailbox in enumerate(getattr(value, "addresses", ())):
            yield f"{name} {at} name", mailbox.display_name
            yield f"{name} {at} mailbox", mailbox.addr_spec
        if not hasattr(value, "addresses"):
            yield name, re.sub('boundary="[^"]*"', "", str(value))


def line_faults(benign, hostile, pair):
    """What a command prints: as many lines and cells, and nothing that a terminal obeys."""
    lines, others = benign.split("\n"), hostile.split("\n")
    if [line.count("\t") for line in lines] != [line.count("\t") for line in others]:
        yield f"other lines or cells: {hostile[:300]!r}"
    if commands := re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", hostile):
        yield f"a terminal obeys {sorted(set(commands))}"


def answer_faults(benign, hostile, pair):
    """Two answers by HTTP, whatever they hold."""
    if benign.status_code != hostile.status_code:
        yield f"it is answered {hostile.status_code} instead of {benign.status_code}"
        return
    yield from header_faults(benign.headers.items(), hostile.headers.items(), pair)
    kind = benign.headers.get("Content-Type", "")
    if kind.startswith("text/html"):
        yield from html_faults(benign.text, hostile.text, pair)
    elif kind.startswith("application/json"):
        yield from json_faults(json.loads(benign.text), json.loads(hostile.text), pair)
    elif kind.startswith("application/pdf"):
        yield from pdf_faults(benign.content, hostile.content, pair)
    elif benign.content or hostile.content:
        # A kind of export that this row doesn't know yet is a gap in it.
        yield f"nobody looks at {kind!r}"
