"""Three PostgreSQL servers under Patroni with synchronous replication, on this machine, and the end of its leader.

`NODE` is what docs/deploy/patroni.md shows, without TLS. One etcd stands for three: what is lost here are servers of the
database, and where they vote is a matter of etcd.
"""

import contextlib
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

NAMES = "abc"
# What each program is for, and the package that has it.
PROGRAMS = {"etcd": "etcd-server", "setpriv": "util-linux"}

# Holds the other end of a pipe: when this process is gone, however it went, nothing of the cluster stays.
WATCHDOG = """
trap '' INT TERM HUP
cat
postmasters=$(for one in "$1"/?/data/postmaster.pid; do [ -e "$one" ] && head -1 "$one"; done)
# Those that stand still don't see that theirs is gone.
theirs=$(for one in $postmasters; do pgrep -P "$one"; done)
pkill -KILL -s "$(cat "$1"/*.session | paste -sd,)"
[ -n "$postmasters" ] && kill -KILL $postmasters $theirs
sleep 1
rm -rf "$1"
"""

# The same for all, and kept in etcd from the first start on.
SHARED = """
    ttl: {ttl}
    loop_wait: {loop_wait}
    retry_timeout: {retry_timeout}
    maximum_lag_on_failover: 1073741824
    synchronous_mode: {synchronous}
    synchronous_mode_strict: {synchronous}
    postgresql:
      use_pg_rewind: true
      parameters: {{ synchronous_commit: "on", fsync: "on", full_page_writes: "on", max_connections: 100 }}
"""

NODE = """
scope: dalasi
name: {name}
restapi: {{ listen: "127.0.0.1:{rest}", connect_address: "127.0.0.1:{rest}" }}
etcd3: {{ hosts: "127.0.0.1:{etcd}" }}
bootstrap:
  dcs: {shared}
  initdb: [ {{ encoding: UTF8 }}, {{ locale: C }}, data-checksums ]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {folder}/data
  bin_dir: {programs}
  pgpass: {folder}/pgpass
  authentication:
    superuser: {{ username: postgres, password: inside }}
    replication: {{ username: replicator, password: inside }}
    rewind: {{ username: rewinder, password: inside }}
  parameters: {{ unix_socket_directories: {folder} }}
  pg_hba:
    - local all all scram-sha-256
    - host replication replicator 127.0.0.1/32 scram-sha-256
    - host all all 127.0.0.1/32 scram-sha-256
"""


def missing():
    """What this machine lacks, with the way to get it; None when nothing."""
    packages = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if not patroni():
        packages.append("patroni")
    if not _programs():
        packages.append("postgresql")
    if packages:
        return f"install what is missing, on Debian: apt-get install {' '.join(packages)}"
    # Else it starts, reaches no server, and a run waits for a cluster that never comes.
    runs = subprocess.run([*_as_account(), "sh", "-c", '"$0" --version', patroni()], capture_output=True, cwd="/")
    return None if runs.returncode == 0 else f"PostgreSQL's account can't run {patroni()}"


def _account():
    """Who is not root, when we are: PostgreSQL refuses root."""
    return pwd.getpwnam("postgres") if os.getuid() == 0 else None


def _as_account():
    account = _account()
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"] if account else []


def patroni():
    return os.environ.get("DALASI_TEST_PATRONI") or shutil.which("patroni")


def forgets_who_leads():
    """Why a frozen leader proves nothing about us: an old Patroni, unless it is asked for by name, takes the lead back when it
    wakes, whoever has it by then, and what was acknowledged meanwhile is lost. 3.3.6 and 4.1.5 compare first."""
    said = subprocess.run([patroni(), "--version"], capture_output=True, text=True).stdout.split()[-1]
    if "DALASI_TEST_PATRONI" in os.environ or tuple(map(int, said.split(".")[:2])) >= (3, 3):
        return None
    return f"Patroni {said} gives the lead to whoever wakes up; name one of 3.3 or newer by DALASI_TEST_PATRONI"


def _programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    asked = os.environ.get("DALASI_TEST_POSTGRES_PROGRAMS")
    return asked or (str(found[-1].parent) if found else None)


class Node:
    def __init__(self, cluster, name):
        self.name = name
        self.cluster = cluster
        self.folder = cluster.folder / name
        self.folder.mkdir()
        self.port, self.rest = free_port(), free_port()
        self.process = None

    def start(self):
        self.process = self.cluster.run(f"patroni-{self.name}", patroni(), self.folder / "node.yml")

    def configure(self):
        text = NODE.format(
            name=self.name, rest=self.rest, port=self.port, etcd=self.cluster.etcd_port, folder=self.folder,
            programs=self.cluster.programs, shared=SHARED.format(**self.cluster.shared),
        )  # fmt: skip
        (self.folder / "node.yml").write_text(text)

    def postmaster(self):
        try:
            return int((self.folder / "data/postmaster.pid").read_text().split()[0])
        except (OSError, IndexError):
            return None

    def processes(self):
        """Its Patroni first, so that nobody helps the rest; then the postmaster and the processes of its sessions."""
        postmaster = self.postmaster()
        found = [self.process.pid] if self.process else []
        if postmaster:
            children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True).stdout
            found += [postmaster, *map(int, children.split())]
        return found

    def signal(self, which, processes):
        for process in processes:
            try:
                os.kill(process, which)
            except ProcessLookupError:
                pass

    def status(self, path="patroni"):
        """What its Patroni says of it, or of the `cluster`; None when it says nothing."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/{path}", timeout=2) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as answer:
            return json.load(answer)
        except OSError:
            return None


class Cluster:
    def __init__(self, synchronous=True, ttl=20, loop_wait=5, retry_timeout=5):
        self.shared = {
            "synchronous": str(synchronous).lower(), "ttl": ttl, "loop_wait": loop_wait, "retry_timeout": retry_timeout,
        }  # fmt: skip
        self.held = []
        self.synchronous = synchronous
        self.programs = _programs()
        # Not below pytest's own folder: PostgreSQL runs as another user than root, who may not enter there.
        self.folder = Path(tempfile.mkdtemp(prefix="cluster-"))
        self.account = _account()
        self.watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, "watchdog", self.folder], stdin=subprocess.PIPE, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.etcd_port = free_port()
        self.nodes = [Node(self, name) for name in NAMES]

    def start(self):
        for node in self.nodes:
            node.configure()
        if self.account:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, self.account.pw_uid, self.account.pw_gid)
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, free_port()))
        self.run(
            "etcd", shutil.which("etcd"), "--name=one", f"--data-dir={self.folder}/etcd",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=one={peer}",
        )  # fmt: skip
        for node in self.nodes:
            node.start()
        self.wait_until_whole()
        return self

    def run(self, name, *command):
        """Starts a program as the user that PostgreSQL runs as, in a session of its own."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                [*_as_account(), *map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                start_new_session=True, env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            )  # fmt: skip
        (self.folder / f"{name}.session").write_text(f"{process.pid}\n")
        return process

    def url(self, database="postgres"):
        """As the guide says: every server by name, and the one that can be written to is found."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgres://postgres:inside@{hosts}/{database}"

    def psql_url(self, database="postgres"):
        return self.url(database) + "?target_session_attrs=read-write"

    def leader(self):
        for node in self.nodes:
            status = node.status()
            if status and status.get("role") in ("master", "primary") and status.get("state") == "running":
                return node
        return None

    def wait_until_whole(self, timeout=120):
        """One leader, two that follow it on its time line and, if that is how it is set up, one that may take over: etcd names
        it later than the leader begins to wait for it, and until then nobody would."""
        end = time.monotonic() + timeout
        while not self.is_whole():
            if time.monotonic() > end:
                raise AssertionError(f"the cluster is not whole: {[node.status() for node in self.nodes]}\n{self.log()}")
            time.sleep(0.2)

    def is_whole(self):
        leader = self.leader()
        if leader is None:
            return False
        status = leader.status() or {}
        following = [one for one in status.get("replication", []) if one["state"] == "streaming"]
        lines = {(node.status() or {}).get("timeline") for node in self.nodes}
        whole = len(following) == len(self.nodes) - 1 and len(lines) == 1
        return whole and bool(self.may_lead(leader)) == self.synchronous

    def may_lead(self, leader):
        """Who takes over from this leader, as etcd has it: the standbys that each commit waits for."""
        members = (leader.status("cluster") or {}).get("members", [])
        return [member["name"] for member in members if member["role"] == "sync_standby"]

    def history(self):
        """The time lines: for each the position in the log at which it ended, when, and who led the next."""
        return next((found for node in self.nodes if (found := node.status("history"))), None)

    def log(self, most=3000):
        texts = [f"── {path.name}\n" + path.read_text(errors="replace")[-most:] for path in self.folder.glob("*.log")]
        return "\n".join(texts)

    def kill(self, node):
        """As if its machine had lost its power: nothing is told to anybody, and no session outlives the others. One that learns
        that its postmaster is gone stops waiting for a standby, and shows whoever still asks what no standby has."""
        node.signal(signal.SIGSTOP, node.processes())
        node.signal(signal.SIGKILL, [*node.processes(), *self.held])
        node.process.wait()

    def hold_back(self, leader):
        """From here on its standbys get nothing more: what sends them the log stands still until the leader is killed."""
        senders = subprocess.run(
            ["pgrep", "-P", str(leader.postmaster()), "-f", "walsender"], capture_output=True, text=True
        )
        self.held = [int(one) for one in senders.stdout.split()]
        assert len(self.held) == len(self.nodes) - 1, f"{len(self.held)} standbys are fed"
        leader.signal(signal.SIGSTOP, self.held)

    def freeze(self, node):
        """As if its machine had stopped answering; answers what wakes it."""
        processes = node.processes()
        node.signal(signal.SIGSTOP, processes)
        return lambda: node.signal(signal.SIGCONT, reversed(processes))

    def stop(self):
        self.watchdog.stdin.close()
        self.watchdog.wait(timeout=30)


def free_port():
    """Free while its server is down, too: none that the kernel gives to whoever connects somewhere."""
    end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(10_000, end)))
            return one.getsockname()[1]
