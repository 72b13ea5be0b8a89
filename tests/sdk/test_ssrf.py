"""Row D5: whatever URL it is given, the server begins no connection inside. Judged by every first packet of a connection,
in a network of its own where every address is this machine and the name server lies."""

import json
import os
import shlex
import subprocess
import sys

from proof import Proof

GATE_URLS = 400
# Of names that change their mind, for so many URLs one.
URLS_PER_REBIND = 10
REBINDS_OF_A_CONTROL = 6
INSIDE = """
mount --bind {resolv} /etc/resolv.conf
ip link set lo up
ip route add local 0.0.0.0/0 dev lo
ip -6 route add local ::/0 dev lo
exec {program}
"""


def apart(program, folder):
    """In a network and with a name server of its own."""
    resolv = folder / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    script = INSIDE.format(resolv=shlex.quote(str(resolv)), program=shlex.join(program))
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *rights, "--net", "--mount", "sh", "-ec", script]
    return subprocess.run(words, capture_output=True, text=True, cwd=os.path.dirname(__file__))


def given(folder, seed, *counts_and_defect):
    """What came of so many URLs and rebinds that a server was given."""
    folder.mkdir()
    words = [sys.executable, "ssrf.py", folder, seed, *counts_and_defect]
    done = apart([str(word) for word in words], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_inside_is_called(tmp_path, database):
    with Proof("D5", database, GATE_URLS) as proof:
        try:
            tried = apart(["true"], tmp_path)
        except FileNotFoundError as fault:
            tried = subprocess.CompletedProcess([], 1, "", str(fault))
        if tried.returncode != 0:
            proof.not_run(f"no network of its own can be made here: {tried.stderr.strip()}")
        seen = given(tmp_path / "good", proof.seed, proof.wanted, max(proof.wanted // URLS_PER_REBIND, 1))
        found = seen.pop("found")
        print(seen)
        for what in found:
            proof.violation(what)
        if seen["lost"]:
            proof.violation(f"{seen['lost']} packets were not seen")
        proof.reached = seen["urls"]
        for name, is_caught in seen["controls"].items():
            proof.control(name, is_caught)
        planted = given(tmp_path / "planted", proof.seed, 0, REBINDS_OF_A_CONTROL, "registration_check_only")
        proof.control("registration_check_only", bool(planted["found"]))
