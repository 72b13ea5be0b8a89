"""Holds every answer of a server, and every event that it sends, against `openapi.json`: the operation is described,
its status is, and the body is exactly what the schema says. An undeclared field is a fault.

It listens where all requests of this process pass, the SDK's and ours: in `requests`' adapter.
"""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from jsonschema_rs import Draft202012, Draft202012Validator, Registry
from requests.adapters import HTTPAdapter

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())
# What an address answers before any operation is reached, whatever the address.
EVERYWHERE = {404: "route_not_found", 405: "method_not_allowed", 414: "address_too_long", 431: "headers_too_large"}
# Pages and machines' own formats, which are no part of the described API.
OTHER = re.compile(r"^/(checkout|invoice|pay|verify|receipts|simulator|assets|logos|docs|metrics|openapi\.json|$)")
EXPECTED_HEADERS = re.compile(r"^req_[0-9a-hjkmnp-tv-z]{26}$")


def _pattern(template):
    literal = re.split(r"\{\w+\}", template)
    return re.compile("[^/]+".join(map(re.escape, literal)))


# Those without a parameter first: they are meant where both match.
_PATHS = sorted(
    ((template.count("{"), _pattern(template), template) for template in DOCUMENT["paths"]), key=lambda path: path[0]
)


def operation(method, path):
    """The template and the description of what is called, or (None, None)."""
    for _, pattern, template in _PATHS:
        if pattern.fullmatch(path) and method.lower() in DOCUMENT["paths"][template]:
            return template, DOCUMENT["paths"][template][method.lower()]
    return None, None


# Read once: a validator of its own for each part would hold, and look through, the whole document each time.
_PARTS = Registry(
    [("urn:openapi", {key: DOCUMENT[key] for key in ("paths", "webhooks", "components")})], draft=Draft202012
)


@cache
def _validator(pointer):
    return Draft202012Validator({"$ref": f"urn:openapi#{pointer}"}, validate_formats=True, registry=_PARTS)


def _escape(part):
    return part.replace("~", "~0").replace("/", "~1").replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def faults(method, url, status, headers, body):
    """What is wrong with an answer, one sentence each."""
    path = urlsplit(url).path
    if OTHER.match(path) or method in ("OPTIONS", "HEAD"):
        return []
    found = []
    if not EXPECTED_HEADERS.match(headers.get("X-Request-Id", "")):
        found.append("the header X-Request-Id is missing or malformed")
    template, described = operation(method, path)
    key = str(status)
    if described is None or key not in described["responses"]:
        code = _code(body)
        if EVERYWHERE.get(status) == code and (described is None or status in (414, 431)):
            pointer = "/components/schemas/Error"
        else:
            return [*found, f"{status} {code or ''} is not described for {template or 'an unknown address'}"]
    else:
        answer = described["responses"][key]
        pointer = f"/paths/{_escape(template)}/{method.lower()}/responses/{key}"
        if "$ref" in answer:
            pointer = answer["$ref"].removeprefix("#")
            answer = DOCUMENT["components"]["responses"][pointer.rsplit("/", 1)[1]]
        if "content" not in answer:
            return found + (["a body where none is described"] if body else [])
        found += _header_faults(answer, headers)
        if "application/pdf" in answer["content"]:
            return [*found, *_file_faults(headers, body)]
        pointer += "/content/application~1json/schema"
    if not headers.get("Content-Type", "").startswith("application/json"):
        return [*found, f"Content-Type is {headers.get('Content-Type')!r}"]
    try:
        value = json.loads(body)
    except ValueError as error:
        return [*found, f"the body is not JSON: {error}"]
    return [*found, *(f"{place or 'the body'}: {message}" for place, message in _broken(pointer, value))]


def _broken(pointer, value):
    """What of a schema a value breaks: the place, and a sentence."""
    for error in _validator(pointer).iter_errors(value):
        deepest = _deepest(error)
        yield "/".join(map(str, deepest.instance_path)), deepest.message[:300]


def _file_faults(headers, body):
    kind = headers.get("Content-Type")
    if kind != "application/pdf; charset=iso-8859-1":
        yield f"Content-Type is {kind!r}"
    if not body.startswith(b"%PDF-") or not body.endswith(b"%%EOF"):
        yield "the body is not a PDF file"


def _deepest(error):
    """Of a choice that nothing fits, the fault that lies deepest says most."""
    while branches := getattr(error.kind, "context", None):
        error = max((inner for branch in branches for inner in branch), key=lambda inner: len(inner.instance_path))
    return error


def event_faults(event):
    """What is wrong with the envelope of a delivered event."""
    kind = event.get("type")
    if kind not in DOCUMENT["webhooks"]:
        return [f"{kind!r} is not described"]
    pointer = f"/webhooks/{kind}/post/requestBody/content/application~1json/schema"
    return [f"{place}: {message}" for place, message in _broken(pointer, event)]


@cache
def _header_validator(schema):
    return Draft202012Validator(json.loads(schema))


def _header_faults(answer, headers):
    for name, described in answer.get("headers", {}).items():
        described = DOCUMENT["components"]["headers"][described["$ref"].rsplit("/", 1)[1]]
        value = headers.get(name)
        if value is None:
            if described.get("required"):
                yield f"the header {name} is missing"
            continue
        schema = described["schema"]
        typed = int(value) if schema["type"] == "integer" and value.isdigit() else value
        for error in _header_validator(json.dumps(schema)).iter_errors(typed):
            yield f"the header {name}: {error.message}"


def _code(body):
    try:
        return json.loads(body).get("code")
    except (ValueError, AttributeError):
        return None


class Watch:
    """Checks the answers of the servers that it is told of, from `start` to `stop`."""

    def __init__(self):
        self.servers = []
        self.seen = {}
        self.faults = []
        self._send = HTTPAdapter.send

    def start(self):
        watch, send = self, self._send

        def checked(adapter, request, **options):
            response = send(adapter, request, **options)
            watch.look(request, response)
            return response

        HTTPAdapter.send = checked

    def stop(self):
        HTTPAdapter.send = self._send

    def look(self, request, response):
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" not in [server.url for server in self.servers]:
            return
        template, described = operation(request.method, parts.path)
        if described:
            answered = self.seen.setdefault(described["operationId"], set())
            answered.add(response.status_code)
        for fault in faults(request.method, request.url, response.status_code, response.headers, response.content):
            self.faults.append(f"{request.method} {parts.path} → {response.status_code}: {fault}")

    def take_faults(self):
        """What was found since the last call."""
        found, self.faults = self.faults, []
        return found
