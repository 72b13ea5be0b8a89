"""A PDF file by its own grammar: names and operators count where a reader takes them for such, not within strings."""

import re
import zlib
from collections import Counter
from functools import lru_cache
from xml.etree import ElementTree

from hostile import plain, text_fault

TOKEN = re.compile(
    rb"(?P<blank>[\x00\t\n\f\r ]+|%[^\r\n]*)|(?P<name>/[^\x00\t\n\f\r ()<>\[\]{}/%]*)|(?P<open><<|\[)|(?P<close>>>|\])"
    rb"|(?P<hex><[0-9A-Fa-f\s]*>)|(?P<string>\()|(?P<word>[^\x00\t\n\f\r ()<>\[\]{}/%]+)"
)
# No invoice has any of these.
ACTIVE = {
    "/JS", "/JavaScript", "/OpenAction", "/AA", "/Launch", "/SubmitForm", "/ImportData", "/GoToR", "/GoToE",
    "/EmbeddedFile", "/EmbeddedFiles", "/RichMedia", "/AcroForm", "/XFA", "/Rendition", "/Movie", "/Sound", "/Named",
    "/Widget", "/FileAttachment",
}  # fmt: skip
# As many as the letters and lines of a text ask for.
BY_TEXT = {
    "/Font", "/FontDescriptor", "/Span", "/MCR", "/MCID", "/Page", "/ObjStm", "/XRef", "/CIDFontType2",
    "/CIDFontType0", "/CIDFontType0C", "/Type0", "/Type3", "/CMap", "/OpenType", "/Group", "/Transparency", "/XObject",
    "/ExtGState", "/Pattern", "/CIDToGIDMap", "/Identity",
}  # fmt: skip
# Streams that are pictures, fonts, functions and tables.
NOT_DRAWN = {b"/XRef", b"/Subtype", b"/Length1", b"/N", b"/FunctionType", b"/ShadingType", b"/CMapName"}
# What draws: paths, colours, text, pictures and marks. No inline pictures.
DRAWING = set(
    b"b B b* B* BDC BMC BT BX c cm cs CS d d0 d1 Do DP EMC ET EX f F f* g G gs h i j J k K l m M MP n q Q re rg RG ri"
    b" s S sc SC scn SCN sh T* Tc Td TD Tf Tj TJ TL Tm Tr Ts Tw Tz v w W W* y ' \"".split()
)


class Malformed(Exception):
    pass


def tokens(text, at=0):
    """(kind, token) one after the other; at `stream` it ends with where that word ended."""
    depth = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if not found:
            raise Malformed(f"{text[at : at + 40]!r} is no token")
        at = found.end()
        kind = found.lastgroup
        if kind == "string":
            start, level = at, 1
            while level:
                if at >= len(text):
                    raise Malformed("a string without an end")
                letter = text[at : at + 1]
                level += {b"(": 1, b")": -1}.get(letter, 0)
                at += 2 if letter == b"\\" else 1
            yield "string", text[start : at - 1], at
        elif kind != "blank":
            depth += {"open": 1, "close": -1}.get(kind, 0)
            if depth < 0:
                raise Malformed("something closes that was not open")
            yield kind, found[0], at


@lru_cache(maxsize=50)
def parts(file):
    """Names with their numbers, operators of what is drawn, addresses, and the metadata's XML."""
    names, operators, addresses, described = Counter(), Counter(), [], []
    at, end = 0, file.rindex(b"startxref")
    while at < end:
        restart = None
        before, header = None, []
        for kind, token, after in tokens(file[:end], at):
            header.append((kind, token))
            if kind == "name":
                names[token.decode("latin-1")] += 1
            if before == b"/URI" and kind == "string":
                addresses.append(token)
            before = token
            if kind == "word" and token == b"stream":
                body = after + (2 if file[after : after + 2] == b"\r\n" else 1)
                named = max(at for at, it in enumerate(header) if it == ("name", b"/Length"))
                length = int(header[named + 1][1])
                _stream(header, file[body : body + length], names, operators, addresses, described)
                restart = body + length
                break
            if kind == "word" and token == b"xref":
                return names, operators, addresses, described
        if restart is None:
            break
        at = restart
    return names, operators, addresses, described


def _stream(header, raw, names, operators, addresses, described):
    begun = max(at for at, it in enumerate(header) if it == ("word", b"obj"))
    own = [token for _, token in header[begun:]]
    text = zlib.decompress(raw) if b"/FlateDecode" in own else raw
    if b"/Metadata" in own:
        described.append(text)
    elif b"/ObjStm" in own:
        first = int(own[own.index(b"/First") + 1])
        before = None
        for kind, token, _ in tokens(text, first):
            if kind == "name":
                names[token.decode("latin-1")] += 1
            if before == b"/URI" and kind == "string":
                addresses.append(token)
            before = token
    elif not NOT_DRAWN & set(own) and b"begincmap" not in text and (b"BT" in text or b" re" in text):
        words = (token for kind, token, _ in tokens(text) if kind == "word")
        operators.update(word for word in words if re.fullmatch(rb"[A-Za-z'\"*][\w*]*", word))


def pdf_faults(benign, hostile, pair):
    """A payload adds nothing to a document but letters."""
    try:
        names, operators, addresses, described = parts(benign)
        other_names, other_operators, other_addresses, other_described = parts(hostile)
    except (Malformed, zlib.error, StopIteration, ValueError) as fault:
        yield f"the file is malformed: {fault}"
        return
    assert operators, "something is drawn"
    if active := ACTIVE & set(other_names):
        yield f"the file does something: {sorted(active)}"
    pages, other_pages = names["/Page"], other_names["/Page"]
    for name in {name for name in other_names if name[1:].isalpha()} | set(names):
        # Names of fonts and colours are numbered or random; a table that goes on has its heads once more.
        if name in BY_TEXT or not name[1:].isalpha() or pages != other_pages or "+" in name:
            continue
        if bool(names[name]) != bool(other_names[name]):
            yield f"the file has {other_names[name]} {name} instead of {names[name]}"
    if added := set(other_operators) - DRAWING:
        yield f"it draws with {sorted(added)}"
    if len(addresses) != len(other_addresses) or {plain(it.decode("latin-1")) for it in addresses} != {
        plain(it.decode("latin-1")) for it in other_addresses
    }:
        yield f"it leads to {other_addresses}"
    for xml, other_xml in zip(described, other_described):
        try:
            nodes, others = list(ElementTree.fromstring(xml).iter()), list(ElementTree.fromstring(other_xml).iter())
        except ElementTree.ParseError as fault:
            yield f"its metadata is malformed: {fault}"
            continue
        if [(it.tag, sorted(it.attrib)) for it in nodes] != [(it.tag, sorted(it.attrib)) for it in others]:
            yield "its metadata is another tree"
            continue
        for node, other in zip(nodes, others):
            if node.tag.endswith(("InstanceID", "DocumentID", "NPages")):
                continue
            if fault := text_fault(node.text or "", other.text or "", pair):
                yield f"its metadata says {fault}"
