"""A merchant's picture: fetched once, drawn anew, shown from our own host on pages and in documents."""

import os
import re
import struct
import subprocess
import sys
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import requests

from checks import data, eventually, ok
from invoices import order
from server import Api

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def png(width, height, colour=(11, 110, 79)):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes(colour) * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # What a picture may carry beside its pixels stays behind.
    note = chunk(b"tEXt", b"Comment\0<script>alert(1)</script>")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + note + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def shop():
    """A merchant's web server, whose files a test sets."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            if self.path in self.server.held:
                self.server.held[self.path].wait(10)
            status, body = self.server.files.get(self.path, (404, b""))
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", body.decode())
                body = b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    shop = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shop.files, shop.asked, shop.held = {}, [], {}
    shop.url = f"http://127.0.0.1:{shop.server_port}"
    Thread(target=shop.serve_forever, daemon=True).start()
    yield shop
    shop.shutdown()


@pytest.fixture
def merchant(api):
    """Names a picture, and takes it away at the end."""
    yield lambda address: data(api.put("/v1/pay/settings", {"logo_url": address}))
    data(api.put("/v1/pay/settings", {"logo_url": None}))


@pytest.fixture
def page(sdk):
    checkout = ok(sdk.checkouts.create(amount="10.00"))
    return lambda: requests.get(checkout["payment_url"], timeout=10).text


def shown(page):
    found = re.search(r'<img class="logo" src="(/logos/[^"]+)"', page())
    return found and found.group(1)


def given_up(server):
    """How often the server has said that it can't show a picture; it says so when all is over."""
    return server.log.read_text(errors="replace").count("the merchant's logo can't be shown")


def pictures(file):
    """Widths and heights of the pictures in a PDF file, as poppler finds them."""
    done = subprocess.run(["pdfimages", "-list", "-"], input=file, capture_output=True, check=True)
    return [tuple(line.split()[3:5]) for line in done.stdout.decode().splitlines()[2:]]


def test_it_is_on_pages_and_in_documents(sdk, server, shop, merchant, page, bill):
    shop.files["/logo"] = (200, png(960, 240))
    invoice = bill()
    before = ok(sdk.invoices.download_pdf(invoice["id"]))["raw"].encode("latin-1")
    assert pictures(before) == []
    assert shown(page) is None
    assert merchant(f"{shop.url}/logo")["logo_url"] == f"{shop.url}/logo"
    path = eventually(lambda: shown(page))
    asked = len(shop.asked)
    picture = requests.get(server.url + path, timeout=10)
    assert picture.status_code == 200
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.headers["X-Content-Type-Options"] == "nosniff"
    assert "immutable" in picture.headers["Cache-Control"]
    width, height = struct.unpack(">II", picture.content[16:24])
    assert (width, height) == (480, 120)
    assert b"script" not in picture.content
    after = ok(sdk.invoices.download_pdf(invoice["id"]))["raw"].encode("latin-1")
    assert ("480", "120") in pictures(after)
    assert len(shop.asked) == asked, "who looks asks the merchant's server for nothing"


def test_another_address_is_another_picture_and_none_is_none(server, shop, merchant, page):
    shop.files["/red"], shop.files["/blue"] = (200, png(64, 64, (255, 0, 0))), (200, png(64, 64, (0, 0, 255)))
    merchant(f"{shop.url}/red")
    red = eventually(lambda: shown(page))
    merchant(f"{shop.url}/blue")
    blue = eventually(lambda: (path := shown(page)) and path != red and path)
    assert requests.get(server.url + red, timeout=10).status_code == 200, "receipts of then still show it"
    # The same address may show something new: to save it again looks again.
    shop.files["/blue"] = (200, png(64, 64, (0, 0, 128)))
    merchant(f"{shop.url}/blue")
    eventually(lambda: (path := shown(page)) and path != blue)
    merchant(None)
    assert shown(page) is None


def test_a_new_address_does_not_wait_for_the_next_try_of_the_old_one(server, shop, merchant, page):
    shop.held["/away"] = Event()
    shop.files["/there"] = (200, png(8, 8))
    before = given_up(server)
    merchant(f"{shop.url}/away")
    eventually(lambda: "/away" in shop.asked)
    merchant(f"{shop.url}/there")
    shop.held["/away"].set()
    eventually(lambda: given_up(server) > before)
    eventually(lambda: shown(page), timeout=5)
    assert shop.asked.count("/there") == 1


@contextmanager
def a_busy_machine(server):
    """For the thread on which files are made before anybody asks: it gives way to others, and here they take it all."""
    tasks = Path(f"/proc/{server.process.pid}/task")
    [thread] = eventually(lambda: [int(task.name) for task in tasks.iterdir() if is_called(task, "background")])
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(thread, {processor})
    os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        for other in others:
            os.sched_setaffinity(other.pid, {processor})
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def is_called(task, name):
    """A thread that has ended meanwhile is called nothing."""
    try:
        return (task / "comm").read_text().strip() == name
    except OSError:
        return False


def test_it_does_not_wait_behind_files_that_nobody_asked_for(new_server, shop):
    shop.files["/now"] = (200, png(8, 8))
    server = new_server()
    api = Api(server.url, server.keys["test"]["secret"])
    data(api.post("/v1/pay/invoices", order()), 201)
    with a_busy_machine(server):
        for _ in range(20):
            data(api.post("/v1/pay/invoices", order()), 201)
        data(api.put("/v1/pay/settings", {"logo_url": f"{shop.url}/now"}))
        page = data(api.post("/v1/checkouts", {"amount": "10.00"}), 201)["payment_url"]
        eventually(lambda: shown(lambda: requests.get(page, timeout=10).text))


@pytest.mark.parametrize(
    "status, body",
    [
        (200, SVG),
        (200, b"<html>"),
        (200, b""),
        (200, png(4000, 1)),
        (200, b"\x89PNG\r\n\x1a\n" + bytes(3 << 20)),
        (302, b"/fine"),
        (500, png(8, 8)),
    ],
    ids=["svg", "html", "empty", "too wide", "too large", "redirect", "fault"],
)
def test_what_is_no_picture_is_left_out(server, shop, merchant, page, status, body):
    shop.files["/fine"] = (200, png(8, 8))
    address = f"/it{len(shop.asked)}"
    shop.files[address] = (status, body)
    before = given_up(server)
    merchant(shop.url + address)
    eventually(lambda: given_up(server) > before)
    assert address in shop.asked
    assert '<span class="logo"' in page() and shown(page) is None
    assert "/fine" not in shop.asked


@pytest.mark.parametrize(
    "address", ["http://169.254.169.254/latest/meta-data", "https://10.0.0.1/logo.png", "https://localhost/x.png"]
)
def test_inner_addresses_are_refused(server, merchant, page, address):
    before = given_up(server)
    merchant(address)
    eventually(lambda: given_up(server) > before, timeout=3)
    assert shown(page) is None


def test_live_mode_does_not_ask_this_machine(server, shop, merchant, page):
    """Test mode may, for a developer's shop: that is how the listener is seen to hear."""
    shop.files["/here"] = (200, png(8, 8))
    before = given_up(server)
    live = Api(server.url, server.keys["live"]["secret"])
    data(live.put("/v1/pay/settings", {"logo_url": f"{shop.url}/here"}))
    eventually(lambda: given_up(server) > before)
    assert "/here" not in shop.asked
    data(live.put("/v1/pay/settings", {"logo_url": None}))
    merchant(f"{shop.url}/here")
    eventually(lambda: shown(page))
    assert shop.asked.count("/here") == 1


@pytest.mark.parametrize("path", ["x", "../../keys", "0" * 64, "A" * 64 + ".png", "0" * 63 + ".png", "0" * 64 + ".svg"])
def test_a_picture_that_is_not_there(server, page, path):
    for mode in ("test", "live", "both"):
        answer = requests.get(f"{server.url}/logos/{server.organization_id}/{mode}/{path}", timeout=10)
        assert answer.status_code == 404
