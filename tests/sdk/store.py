"""A store that a Dalasi server keeps its data in: a folder (SQLite) or a PostgreSQL database. Each is fresh."""

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import uuid
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

TARGET = Path(__file__).parents[2] / "target"
BINARY = os.environ.get("DALASI_BIN") or str(TARGET / "debug/dalasi")
# The same with defects on purpose, as `cargo xtask test --only sdk` builds it.
PLANTED_BINARY = os.environ.get("DALASI_PLANTED_BIN") or str(TARGET / "optimized/debug/dalasi")


def dalasi(*arguments, timeout=60, check=True, **options):
    """Runs one command of the real binary to its end."""
    result = subprocess.run(
        [BINARY, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(),
        **options,
    )
    if check and result.returncode != 0:
        raise AssertionError(
            f"dalasi {' '.join(map(str, arguments))}: exit {result.returncode}\n{result.stdout}{result.stderr}"
        )
    return result


def at_a_terminal(*arguments):
    """What a command prints when it sees a terminal."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [BINARY, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    os.close(theirs)
    printed = b""
    try:
        while read := os.read(ours, 65536):
            printed += read
    except OSError:
        pass  # The other side is closed.
    os.close(ours)
    assert program.wait(timeout=30) == 0, f"{arguments} at a terminal"
    return printed.decode().replace("\r\n", "\n")


def environment():
    """Ours, without what would configure the server behind the test's back."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DALASI_")}


class Store:
    """What `init`, `serve` and the other commands need to be told to find the data: `location`."""

    location: list

    def init(self, organization="Kairaba Books"):
        """Initialises the store; answers the organization's id and its keys."""
        result = dalasi("init", *self.location, "--organization", organization, "--json")
        return json.loads(result.stdout)

    def verify(self):
        return dalasi("verify", *self.location, check=False)

    def give_key_to(self, restored):
        """The master key, which is no part of a backup."""
        restored.key_file().parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.key_file(), restored.key_file())

    def end_pauses(self):
        """What waits for its next attempt is due, as if the pauses were over; no server may have the store open. (A retry by
        hand would not do: it is exempt from the order.)"""
        self.ask("update webhook_deliveries set next_retry_at = 1 where status = 'pending'")


class SqliteStore(Store):
    name = "sqlite"

    def __init__(self, folder):
        self.folder = Path(folder)
        self.location = ["--data-dir", self.folder]

    def copy(self, folder):
        """A copy of a store that no server has open."""
        shutil.copytree(self.folder, folder)
        return SqliteStore(folder)

    def key_file(self):
        return self.folder / "master.key"

    def database_file(self):
        files = [
            path for path in self.folder.rglob("*") if path.is_file() and path.read_bytes()[:16] == b"SQLite format 3\0"
        ]
        assert len(files) == 1, f"one database file expected in {self.folder}, found {files}"
        return files[0]

    def ask(self, statement):
        """The first value of the answer; no server may have the store open."""
        with closing(sqlite3.connect(self.database_file())) as connection, connection:
            row = connection.execute(statement).fetchone()
        return str(row[0]) if row else ""

    def drop(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresStore(Store):
    name = "postgres"

    def __init__(self, folder, server_url, template="template1"):
        self.server_url = server_url
        self.database = f"dalasi_{uuid.uuid4().hex}"
        psql(server_url, f"create database {self.database} template {template}")
        parts = urlsplit(server_url)
        self.url = urlunsplit(parts._replace(path=f"/{self.database}"))
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.location = ["--database-url", self.url, "--key-file", folder / "master.key"]

    def copy(self, folder):
        """A copy of a store that no server has open."""
        copy = PostgresStore(folder, self.server_url, template=self.database)
        self.give_key_to(copy)
        return copy

    def key_file(self):
        return self.location[-1]

    def ask(self, statement):
        return psql(self.url, statement)

    def drop(self):
        psql(self.server_url, f"drop database if exists {self.database} with (force)")


def psql(url, statement):
    result = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1",
         "--dbname", url, "--command", statement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
