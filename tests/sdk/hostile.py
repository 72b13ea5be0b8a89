"""Texts that mean something to whoever shows them: a browser, a mail program, a PDF reader, a terminal, a spreadsheet.
And harmless ones of the same shape, beside which their output is laid."""

import re
import unicodedata
from urllib.parse import quote

# Each kind once; the longer tiers put pieces of them together.
PAYLOADS = [
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) autofocus onfocus='alert(1)' x=\"",
    "\"><svg/onload=alert(1)><a href='javascript:alert(1)'>x</a>",
    "</title></textarea></style></script></noscript></select></template><h1>x",
    "<!-- x --!> <!--> ]]> <![CDATA[ x ]]> <?php x ?> <!doctype x>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &amp;lt; &#60;b&#62; &#x3c;b&#x3e; &quot; &NewLine;",
    "{{7*7}} ${7*7} #{7*7} {% raw %} <%= 7*7 %> { $merchant } {merchant} {{merchant}} %s %(x)s",
    "first\u2028</p><b>second\u2029<i>third\u0085</i>fourth",
    "Awa \u202e\u2066gpj.exe\u2069\u202c \u200b\u200f\ufeff<b>\u061cx</b>",
    "x%00y%0d%0aSet-Cookie:%20a=b %3Cscript%3E %u003cb %25%33%43b \\u003cb \\x3cb",
    "Awa\r\nBcc: evil@evil.example\r\n\r\n<b>new</b>\nX-Injected: yes\n.\nQUIT\nRCPT TO:<evil@evil.example>",
    "=cmd|' /C calc'!A0;@SUM(1+1)*cmd|' /C calc'!A0;-2+3",
    "\t+HYPERLINK(\"http://evil.example\",\"x\")",
    ") Tj /JS (app.alert(1)) >> endobj 9 0 obj << /OpenAction << /S /JavaScript >>",
    "\\) Tj ET Q stream endstream endobj xref trailer %%EOF <</S/URI/URI(http://evil.example)>> \\",
    "<svg><style><img src=x onerror=alert(1)></style></svg><math><mtext></p><style><img>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "x;}*{background:url(//evil.example)}</style><style>@import'//evil.example' `-alert(1)-` \\';alert(1)//",
    "\u001b[2J\u001b]0;owned\u0007\u001b[31mred\u009b31m \u0008\u0008\u007f",
    "=?utf-8?q?=0D=0ABcc:_evil@evil.example?= <evil@evil.example>, \"x\" <y@evil.example>",
    "<b>" + "long & \"wide\" <i> " * 120,
]  # fmt: skip
PIECES = [
    "<", ">", "\"", "'", "`", "&", "&lt;", "&#60;", "&#x0000003c", "</", "/>", "<!--", "-->", "--!>", "]]>",
    "<![CDATA[", "<?", "\\", "/", "=", "script", "svg", "math", "style", "title", "textarea", "noscript",
    "iframe srcdoc=", "template", "select", "option", "table", "mglyph", "annotation-xml encoding=text/html",
    "foreignObject", "desc", "xmp", "plaintext", "base href=//evil.example", "meta http-equiv=refresh content=0",
    " onerror=", " onload=", " style=", " formaction=", "javascript:", "data:text/html,", "url(", "expression(",
    "@import", "alert(1)", "\r\n", "\n", "\t", "\u2028", "\u202e", "\u200d", "\ufeff", "\u00a0", "\u001b[", "%0d%0a",
    "%3c", "{{", "}}", "${", "{ $merchant }", "(", ")", " Tj", "<<", ">>", "/JS", "/OpenAction", "endobj",
    "endstream", "=cmd|", "+", "-", "@", "Bcc: x@evil.example", "=?utf-8?b?PGI+?=", "é", "ẞ", "漢", "\U0001f4a5",
    "\u0301", "\ufdd0", "\ue000", "\u2215", "＜", "＞", "＂",
]  # fmt: skip
BREAKS = re.compile("(\r\n|[\n\r\v\f\u0085\u2028\u2029])")


def generated(random):
    """Pieces in a random order, one of them perhaps doubled or turned; each line has something to see."""
    chosen = [random.choice(PIECES) for _ in range(random.randrange(2, 40))]
    if random.random() < 0.5:
        kind = random.choice(PAYLOADS[:-1])
        at = random.randrange(len(kind))
        chosen.insert(random.randrange(len(chosen)), kind[:at] + random.choice(PIECES) + kind[at:])
    text = "".join(piece.swapcase() if random.random() < 0.1 else piece for piece in chosen)
    parts = BREAKS.split(text)
    # In the fashion of the list above: a line that is empty once it is clean has no counterpart.
    return "".join(part if index % 2 else "Q" + part + "Z" for index, part in enumerate(parts))[:1900]


# What no two pages have in common, whoever made them.
OWN = [
    (re.compile(r"\b(?:[a-z]+)_[0-9a-hjkmnp-tv-z]{26}\b"), "id"),
    (re.compile(r"\b(?:INV|RCT|RFD|PAY)-\d{4}-(?:\d\d-)?\d+"), "number"),
    (re.compile(r"/simulator/(?!Zq)[\w-]{20,}"), "/simulator/token"),
    (re.compile(r"csec_[0-9a-hjkmnp-tv-z]+"), "secret"),
    (re.compile(r"\+2203\d{6}\b"), "phone"),
    (re.compile(r"zq\.raw\.\d+@"), "zq.raw@"),
    (re.compile(r"[\w+/]{22}==_"), "digest_"),
    (re.compile(r"note=[\w-]+"), "note=sealed"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "code"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "moment"),
    (re.compile(r"\b\d\d?:\d\d(:\d\d)?\b"), "time"),
    (re.compile(r"\b\d+ second"), "some second"),
    (re.compile(r"to\d{8}@pay\.example"), "to@pay.example"),
    (re.compile(r"\S?•••@\S?•••"), "masked@"),
    (re.compile(r"'nonce-[^']*'"), "'nonce'"),
]
# What draws nothing, or only distance; and what stands for what can't be drawn.
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp")
INSTEAD = "\ufffd\u25a1"
# The last letter says as what the line was sent: as itself, or in percent signs for an address.
WORD = re.compile(r"Zq([a-z])x(\d+)([xq])")
# One line of a text, and the lines of one that stand together: what is cut may end in any of them.
LINE = re.compile(r"Zq[a-z]x\d+[xq]")
LINES = re.compile(rf"{LINE.pattern}(?:\s+{LINE.pattern})*")
# What is added to an address stands before its fragment, which a payload may have.
ADDED = re.compile(r"(payment_)?session_id=id")
# To how many characters a text is cut anywhere.
SIZES = (24, 30, 40, 50, 100, 120, 200, 255, 500, 2000)


class Words:
    """A text in all the shapes that fields ask for."""

    def __init__(self, text):
        self.text = text

    def cut(self, most=2000):
        assert most in SIZES
        return self.text[:most]

    def instead(self, valid):
        """Where only one form is good: there it is refused."""
        return self.cut(200)

    def email(self, is_raw=False):
        if is_raw:
            return f"{self.cut(50)}@pay.example"
        kept = "".join(letter for letter in self.cut(50) if letter in "!#$%&'*+/=?^_`{|}~-")
        return f"{kept or 'x'}@pay.example"

    def url(self, is_raw=False):
        return "https://shop.example/thanks?x=" + (self.cut(200) if is_raw else self.quoted(200))

    def quoted(self, most):
        return quote(self.cut(most), safe="")

    def segment(self):
        """For a path: in percent signs, so that what would be another segment stays a text."""
        return self.quoted(200)

    def header(self):
        """Without what can't stand in a header at all: the connection ends there."""
        return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"%{ord(found[0]):02x}", self.cut(500)).strip().encode()


class Benign(Words):
    """The same lines, each of one word that no page has by itself, and that says what it stands for."""

    def cut(self, most=2000):
        return self._named(most, "x")

    def quoted(self, most):
        return quote(self._named(most, "q"), safe="")

    def _named(self, most, sent_as):
        parts = BREAKS.split(super().cut(most))
        for index in range(0, len(parts), 2):
            if len(parts[index]) > 2:
                parts[index] = f"Zq{chr(ord('a') + index // 2)}x{most}{sent_as}"
        return "".join(parts)

    def instead(self, valid):
        return valid

    def email(self, is_raw=False):
        return "zq.raw@pay.example" if is_raw else "zq.benign@pay.example"

    def url(self, is_raw=False):
        # A line break is refused in an address.
        return BREAKS.sub(lambda found: quote(found[0]), super().url(is_raw))


class Pair:
    """A payload and its counterpart: what a page says with the one follows from what it says with the other."""

    def __init__(self, payload):
        self.hostile, self.benign = Words(payload), Benign(payload)
        # At how many positions the payload was seen where it belongs.
        self.shown = 0
        # Pairs with the same counterpart share what is made of it.
        self.shape = tuple(self.benign.cut(size) for size in SIZES)

    def expected(self, text):
        """A benign output, as it would be with the payload."""
        return WORD.sub(self._line, self._with_mailboxes(text))

    def shortens(self, benign, hostile):
        """Whether it is as expected but for payloads that were cut where it says so."""
        benign = self._with_mailboxes(benign)
        return self._is_cut(benign, hostile, LINE) or self._is_cut(benign, hostile, LINES)

    def _is_cut(self, benign, hostile, kind):
        first, *between = (same(part) for part in kind.split(benign))
        wholes = [same(WORD.sub(self._line, found[0])) for found in kind.finditer(benign)]
        pattern = re.escape(first)
        for whole, behind in zip(wholes, between):
            pattern += f"({re.escape(whole)}|.*?…)" + re.escape(behind)
        found = re.fullmatch(pattern, same(hostile), re.DOTALL)
        return bool(found) and all(whole.startswith(cut.rstrip("…")) for whole, cut in zip(wholes, found.groups()))

    def _with_mailboxes(self, text):
        for is_raw in (False, True):
            text = text.replace(self.benign.email(is_raw), self.hostile.email(is_raw))
        return text

    def _line(self, found):
        line = BREAKS.split(self.hostile.cut(int(found[2])))[::2][ord(found[1]) - ord("a")]
        return quote(line, safe="") if found[3] == "q" else line


def same(text):
    """Without what draws nothing or only distance, which each output treats as it must."""
    # An accent joins the letter before it once nothing stands between them.
    kept = (letter for letter in text if unicodedata.category(letter) not in UNSEEN and letter not in INSTEAD)
    return unicodedata.normalize("NFC", "".join(kept))


def plain(text):
    """Without what is another one each time."""
    for pattern, word in OWN:
        text = pattern.sub(word, text)
    return text


def text_fault(benign, hostile, pair, is_address=False):
    """Why a text isn't that of the benign output with the payload in its place, if it is not."""
    if benign == hostile and "Zq" not in benign:
        return None
    benign, hostile = plain(benign), plain(hostile)
    # An address is as it was sent, percent sign for percent sign. Parameters of it that are empty go.
    bare = (lambda text: same(ADDED.sub("", text)).replace("&", "")) if is_address else same
    if bare(hostile) == bare(plain(pair.expected(benign))) or ("…" in hostile and pair.shortens(benign, hostile)):
        pair.shown += "Zq" in benign
        return None
    # A field that refused the payload holds the harmless text.
    if bare(hostile) == bare(benign):
        return None
    return f"{hostile[:160]!r} where {benign[:80]!r} was"


def put_back(body, safe, path):
    """The harmless value for one field, named as a refusal names it; its outermost part, where a name is hostile."""
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]
    for at, step in enumerate(steps):
        try:
            inner, safe_inner = body[step], safe[step]
        except (KeyError, IndexError, TypeError):
            inner, safe_inner = None, None
        if at + 1 < len(steps) and type(inner) is type(safe_inner) and holds(inner, steps[at + 1]):
            body, safe = inner, safe_inner
        else:
            body[step] = safe_inner
            return


def holds(inner, step):
    if isinstance(inner, list):
        return isinstance(step, int) and step < len(inner)
    return isinstance(inner, dict) and step in inner
