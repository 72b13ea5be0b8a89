"""What an operator and a newcomer see from outside: health, metrics, reference, backup."""

import re
import shutil
import socket
from urllib.parse import urlsplit

import pytest
from jokoor import Jokoor

from checks import data, ok
from server import Server
from store import dalasi


def test_health(anonymous):
    for path in ("/health", "/v1/health"):
        assert data(anonymous.get(path)) == {"status": "ok"}
    assert anonymous.get("/health/invariants").status_code == 200


def test_metrics_are_prometheus_text(anonymous, api):
    data(api.get("/v1/checkouts"))
    answer = anonymous.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert re.search(r"^# TYPE \w+ (counter|histogram|gauge|summary)$", answer.text, re.MULTILINE)


def test_the_reference_needs_nobody_else(anonymous):
    document = anonymous.get("/openapi.json")
    assert document.status_code == 200
    assert document.json()["openapi"].startswith("3.1")
    assert {"/v1/checkouts", "/v1/pay/initialize", "/v1/webhook_endpoints", "/v1/events"} <= set(
        document.json()["paths"]
    )
    page = anonymous.get("/docs")
    assert page.status_code == 200
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page.text), "no request goes to another host"


def test_logs_tell_no_secrets(server, api, pay):
    checkout, _ = pay("+2207111222", customer_email="secret-payer@example.com")
    log = server.log.read_text(errors="replace")
    assert log, "the server logs"
    for secret in (
        server.keys["test"]["secret"],
        checkout["client_secret"],
        "2207111222",
        "secret-payer@example.com",
    ):
        assert secret not in log, secret


def test_a_backup_taken_while_running_is_whole(server, sdk, new_store, tmp_path, paid):
    checkout = paid()
    dalasi("backup", *server.store.location, tmp_path / "backup")
    restored = new_store()
    server.store.give_key_to(restored)
    dalasi("restore", *restored.location, tmp_path / "backup")
    assert restored.verify().returncode == 0
    copy = Server(restored, tmp_path / "restored.log").start()
    try:
        with Jokoor(server.keys["test"]["secret"], base_url=copy.url) as client:
            assert ok(client.checkouts.get(checkout["id"]))["status"] == "completed"
    finally:
        copy.stop()


@pytest.mark.skipif(not shutil.which("prlimit"), reason="nothing here sets a limit for one process")
def test_more_connections_than_a_shell_allows_files(new_server):
    server = new_server(prefix=["prlimit", "--nofile=64:4096"])
    place = urlsplit(server.url)
    connections = [socket.create_connection((place.hostname, place.port), timeout=10) for _ in range(200)]
    for connection in connections:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: dalasi\r\n\r\n")
    answers = {connection.recv(12) for connection in connections}
    for connection in connections:
        connection.close()
    assert answers == {b"HTTP/1.1 200"}
