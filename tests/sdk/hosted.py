"""Hosted pages as a browser without script sees them: their forms, what they link to, what they are allowed."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import requests

FORM = "application/x-www-form-urlencoded"
LEADS = {"href", "src", "action", "formaction", "ping", "data", "poster", "srcset", "background", "cite", "manifest"}


class Reader(HTMLParser):
    """Forms with their hidden fields, and every address that something on the page leads to."""

    def __init__(self, text):
        super().__init__()
        self.forms = []
        self.leads = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.forms.append((attributes.get("action", ""), {}))
        if tag == "input" and attributes.get("type") == "hidden" and self.forms:
            self.forms[-1][1][attributes["name"]] = attributes.get("value", "")
        self.leads += [value for name, value in attributes.items() if name in LEADS]
        if tag == "meta" and attributes.get("http-equiv", "").lower() == "refresh":
            self.leads.append(re.sub(r"(?i)^\s*\d+\s*;\s*url=", "", attributes["content"]))
        if tag == "base":
            self.leads.append("a base: " + attributes.get("href", ""))


class Page:
    """One answer."""

    def __init__(self, response):
        self.status = response.status_code
        self.headers = response.headers
        self.text = response.text
        self.location = response.headers.get("Location")
        self.is_html = response.headers.get("Content-Type", "").startswith("text/html")
        reader = Reader(self.text if self.is_html else "")
        # A form without a token is no action of ours: it only asks its own script.
        self.forms = [form for form in reader.forms if "form_token" in form[1]]
        self.leads = reader.leads

    def form(self, ending):
        return next((form for form in self.forms if urlsplit(form[0]).path.endswith(ending)), None)


class Payer:
    """A browser on the pages of one server. It follows what is ours, and sends the headers that browsers send."""

    def __init__(self, url):
        self.url = url
        self.session = requests.Session()
        self.session.trust_env = False

    def ask(self, method, path, fields=None, headers=(), **options):
        headers = {"Accept": "text/html"} | dict(headers)
        if fields is not None and "data" not in options:
            options["data"] = fields
        address = urljoin(self.url, path) if not path.startswith("//") else self.url + path
        return Page(
            self.session.request(method, address, headers=headers, allow_redirects=False, timeout=20, **options)
        )

    def look(self, path):
        """Where one ends up."""
        for _ in range(5):
            page = self.ask("GET", path)
            if page.location is None:
                page.path = path
                return page
            path = page.location.removeprefix(self.url)
        raise AssertionError(f"{path} leads in circles")

    def press(self, page, ending, **fields):
        """Sends a form of a page, and looks at what follows."""
        action, hidden = page.form(ending)
        answer = self.ask(
            "POST", action, hidden | fields, headers={"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        )
        assert answer.status == 303, f"{action}: {answer.status} {answer.text[:300]}"
        return self.look(answer.location)


def strays(page, url, allowed=()):
    """Where a page leads that is neither ours nor allowed."""
    leads = page.leads + ([page.location] if page.location is not None else [])
    for lead in leads:
        # As a browser reads it: backslashes are slashes, blanks and line breaks are nothing.
        read = re.sub(r"[\t\r\n]", "", lead.strip()).replace("\\", "/")
        parts = urlsplit(urljoin(url + "/", read))
        if f"{parts.scheme}://{parts.netloc}" not in (url, *allowed):
            yield lead
    for name, value in page.headers.items():
        if name.lower() in ("refresh", "content-location", "link"):
            yield f"{name}: {value}"


def unframed(page):
    """What is missing that keeps a page out of others' frames."""
    policy = page.headers.get("Content-Security-Policy", "")
    for part in ("frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "default-src 'none'"):
        if part not in policy:
            yield f"the policy lacks {part}"
    if "unsafe" in policy:
        yield "the policy allows something unsafe"
    for name, value in (
        ("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    ):  # fmt: skip
        if page.headers.get(name) != value:
            yield f"{name} is {page.headers.get(name)!r}"
    for name in ("Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Set-Cookie"):
        if name in page.headers:
            yield f"it has {name}"
