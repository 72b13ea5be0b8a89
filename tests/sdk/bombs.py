"""Requests that are meant to hurt: (name, bytes, the answers that are right).

Of every operation with a body, in every place where a value may stand. `None` among the answers: hanging up is right as
well.
"""

from contract import DOCUMENT
from wire import request

NOBODY = "01h455vb4pex5vsknk084sn02q"
PREFIXES = {
    "/v1/checkouts": "cs",
    "/v1/pay/transactions": "txn",
    "/v1/pay/refunds": "ref",
    "/v1/pay/payment-links": "pl",
    "/v1/pay/customers": "cus",
    "/v1/pay/products": "prod",
    "/v1/pay/invoices": "inv",
    "/v1/pay/receipts": "rec",
    "/v1/webhook_endpoints": "we",
    "/v1/events": "evt",
}
MEGABYTE = 1 << 20
REFUSED = {400, 404}


def _nested(name, depth, inner):
    return ('{"%s":' % name) * depth + inner + "}" * depth


# Each of them is a fault, and each fault names its place, which is some kilobytes long.
NULS = "[" + ",".join(['"\\u0000"'] * 60_000) + "]"

# Values as they are written, in place of any field's own.
VALUES = {
    "a million digits": "1" * 1_000_000,
    "a million digits behind the point": "0." + "1" * 999_990,
    "1e400": "1e400",
    "-1e400": "-1e400",
    "1e-400": "1e-400",
    "a huge exponent": "1e999999999999",
    "-0": "-0",
    "-0.0": "-0.0",
    "2^53+1": "9007199254740993",
    "2^63": "9223372036854775808",
    "-2^63-1": "-9223372036854775809",
    "2^64": "18446744073709551616",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "hexadecimal": "0x10",
    "a leading zero": "01",
    "a plus": "+1",
    "a digit with underscores": "1_000",
    "NUL": '"\\u0000"',
    "NUL as it is": '"\0"',
    "a lone surrogate": '"\\ud800"',
    "the other half": '"\\udc00"',
    "surrogates the wrong way round": '"\\udc00\\ud800"',
    "a bidi override": '"\\u202e\\u2066abc"',
    "a zero-width joiner": '"\\u200d\\u200b"',
    "the byte order mark": '"\\ufeff"',
    "NFD": '"e\\u0301"',
    "NFC": '"\\u00e9"',
    "a combining tower": '"' + "a" + "\\u0301" * 10_000 + '"',
    "line breaks": '"a\\r\\nSet-Cookie: x=y"',
    "a control character as it is": '"a\tb"',
    "a broken escape": '"\\x41"',
    "no end": '"abc',
    "a million letters": '"' + "x" * 1_000_000 + '"',
    "an SQL quote": "\"' or 1=1 --\"",
    "a template": '"{{7*7}}${7*7}<script>"',
    "depth 33": "[" * 33 + "]" * 33,
    "depth 129": "[" * 129 + "]" * 129,
    "depth 129 of objects": '{"a":' * 129 + "1" + "}" * 129,
    "half a million brackets": "[" * 500_000,
    "half a million brackets and their ends": "[" * 500_000 + "]" * 500_000,
    "a hundred thousand objects": '{"":' * 100_000,
    "201 keys": "{" + ",".join(f'"k{number}":1' for number in range(201)) + "}",
    "90,000 keys": "{" + ",".join(f'"{number}":1' for number in range(90_000)) + "}",
    "90,000 times the same key": "{" + ",".join('"a":1' for _ in range(90_000)) + "}",
    "300,000 entries": "[" + ",".join("1" for _ in range(300_000)) + "]",
    "a prototype": '{"__proto__":{"admin":true},"constructor":{"prototype":{}}}',
    "a duplicate within": '{"a":1,"a":2}',
    "60,000 NULs, deep down": _nested("\U0001f680" * 64, 29, NULS),
    "a comment": "1/*x*/",
    "a single quote": "'a'",
    "true as a word": "True",
    "a date of the year 0": '"0000-00-00"',
    "a date far off": '"99999-12-31T23:59:60Z"',
    "a number in Bengali digits": '"\\u09e7\\u09e8"',
}

BODIES = {
    "one byte over the limit": b'{"x":"' + b"x" * (MEGABYTE + 1 - 8) + b'"}',
    "two megabytes of spaces": b" " * (2 * MEGABYTE),
    "an empty list": b"[]",
    "a number": b"1",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "overlong UTF-8": b'{"a":"\xc0\x80"}',
    "a surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "broken UTF-8": b'{"a":"\xff\xfe\xfa"}',
    "a million brackets": b"[" * 1_000_000,
    "a hundred thousand keys": b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b"}",
    "a duplicate key": b'{"\\u0061":1,"a":2}',
    "60,000 NULs, deep down": _nested("\U0001f680" * 64, 30, NULS).encode(),
    "half a key": b'{"a',
    "nothing but NUL": b"\0" * 1000,
    "a form": b"a=1&b=2",
    "XML": b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
}  # fmt: skip


def _address(path):
    """With an id that names nothing."""
    for start, prefix in PREFIXES.items():
        if path.startswith(start + "/{"):
            return path.replace(path[path.index("{") : path.index("}") + 1], f"{prefix}_{NOBODY}")
    return path.split("{")[0] + f"ps_{NOBODY}" if "{" in path else path


def operations():
    for path, operations in DOCUMENT["paths"].items():
        for verb, operation in operations.items():
            yield verb.upper(), _address(path), operation


def _fields(operation):
    """The names of the fields of a body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if not content:
        return []
    schema = content["schema"]
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return list(schema["properties"])


def all_of_them(key):
    """Stored by rule: the same in every run."""
    for verb, path, operation in operations():
        name = operation["operationId"]
        if not operation["security"]:
            continue
        if verb != "GET":
            yield from bodies(name, verb, path, key)
            for field in _fields(operation):
                for value_name, value in VALUES.items():
                    # A million of anything in one field of each operation; the rest in all of them.
                    if len(value) > 50_000 and field != _fields(operation)[0]:
                        continue
                    body = ('{"%s":%s}' % (field, value)).encode()
                    yield f"{name}: {field} is {value_name}", request(verb, path, key, body), None
        else:
            yield from queries(name, path, key)
    yield from _frames(key)


def bodies(name, verb, path, key):
    for body_name, body in BODIES.items():
        right = {413, None} if len(body) > MEGABYTE else {400, 404}
        yield f"{name}: {body_name}", request(verb, path, key, body), right
    for encoding in ("gzip", "br", "deflate", "zstd", "identity, gzip"):
        sent = request(verb, path, key, b"\x1f\x8b" + b"\0" * 64, [("Content-Encoding", encoding)])
        yield f"{name}: a body in {encoding}", sent, {415}


def queries(name, path, key):
    for query in (
        "limit=" + "9" * 4000, "limit=-1", "limit=1e400", "limit=0x10", "offset=9223372036854775808", "offset=-0",
        "after=%00", "after=%ff", "after=" + "x" * 4000, "limit=1&limit=2", "&" * 4000, "%", "%zz=1", "a[]=1&a[b]=2",
        "start_date=9999-99-99", "start_date=" + "1" * 4000, "status=%e2%80%ae", "after='%20or%201=1",
    ):  # fmt: skip
        yield f"{name}: ?{query[:30]}", request("GET", f"{path}?{query}", key), None
    yield f"{name}: a 64 KiB address", request("GET", f"{path}?limit={'1' * 65536}", key), {414, 431, None}


def _frames(key):
    """What is wrong with the message itself."""
    head = f"POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    bad = {400, 408, 413, 431, 501, None}
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for name, text, right in (
        ("1,000 headers", "".join(f"X-{number}: x\r\n" for number in range(1000)) + "Content-Length: 2\r\n\r\n{}", {400, 431, None}),
        ("a header of 17 KiB", f"X-Long: {'x' * 17_000}\r\nContent-Length: 2\r\n\r\n{{}}", {431}),
        ("length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", bad),
        ("chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", bad),
        ("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", bad),
        ("chunked, hidden", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", bad),
        ("identity, chunked", "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", bad),
        ("chunked, then identity", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", bad),
        ("a tab before chunked", "Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", bad),
        ("a space before the colon", "Content-Length : 2\r\n\r\n{}", bad),
        ("a folded header", "X-Note: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", bad),
        ("two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", bad),
        ("two lengths in one", "Content-Length: 2, 3\r\n\r\n{}", bad),
        ("a length with a plus", "Content-Length: +2\r\n\r\n{}", bad),
        ("a length beyond all", "Content-Length: 99999999999999999999\r\n\r\n{}", bad),
        ("a length of 2^63", "Content-Length: 9223372036854775808\r\n\r\n{}", bad),
        ("cut: a huge chunk size", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", bad),
        ("a chunk size beyond all", f"Transfer-Encoding: chunked\r\n\r\n{'f' * 40}\r\n", bad),
        ("a chunk with a long extension", f"Transfer-Encoding: chunked\r\n\r\n2;{'x' * 100_000}\r\n{{}}\r\n0\r\n\r\n", bad),
        ("chunks without an end", "Transfer-Encoding: chunked\r\n\r\n" + chunk.decode() * 40, {413, None}),
        ("20,000 chunks", "Transfer-Encoding: chunked\r\n\r\n" + "1\r\n \r\n" * 20_000 + "0\r\n\r\n", {400, 413, None}),
        ("many trailers", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + "X-T: x\r\n" * 5_000 + "\r\n", {400, 413, 431, None}),
        ("an upgrade", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}", {400}),
        ("Expect of another kind", "Expect: 200-maybe\r\nContent-Length: 2\r\n\r\n{}", {400, 417}),
        ("a bare line feed", "X-Note: a\nX-Other: b\r\nContent-Length: 2\r\n\r\n{}", bad),
        ("a carriage return in a value", "X-Note: a\rb\r\nContent-Length: 2\r\n\r\n{}", bad),
        ("a method in its headers", "X-HTTP-Method-Override: DELETE\r\nContent-Length: 2\r\n\r\n{}", {400}),
    ):  # fmt: skip
        yield f"framing: {name}", (head + text).encode("latin-1"), right
