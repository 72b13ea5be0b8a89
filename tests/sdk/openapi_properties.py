"""Row D1: schemathesis over the served description, in all its phases (examples, coverage, fuzzing, stateful).

It works more than it waits, so that it runs beside the simulation (the step `prove` of `cargo xtask test`) and not beside the other
tests here.
"""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

from contract import DOCUMENT
from documented import asked_by_hand, asked_once_too_often, asked_with_a_body_that_never_comes, asked_with_too_long_a_body
from proof import Proof
from server import PLAIN
from store import environment

FOLDER = Path(__file__).parent
# Per operation.
GATE_EXAMPLES = 2
# What takes the place of the one that is left out stands in openapi_hooks.py, with the reason.
LEFT_OUT = "positive_data_acceptance"
# Statuses that no client can bring about by itself: defects of ours, full disks, and more requests than can be answered.
NEVER_HERE = {"500", "503"}
SLOW = ("--rate-limit", "1")
# From so many examples on, of all runs together, each documented status was seen.
JUDGED_EXAMPLES = 200


def run(server, report, examples, seed, document=None, phases="examples,coverage,fuzzing,stateful", include=()):
    """Runs it; its requests by operation, the statuses seen, and the failures, one line each."""
    arguments = [
        "run", document or f"{server.url}/openapi.json", "--url", server.url, "--header",
        f"Authorization: Bearer {server.keys['test']['secret']}", "--checks", "all", "--exclude-checks", LEFT_OUT,
        "--phases", phases, "--max-examples", str(examples), "--seed", str(seed), "--workers", "1",
        "--continue-on-failure", "--no-shrink", "--report", "ndjson", "--report-ndjson-path", str(report), *include,
    ]  # fmt: skip
    code = "from schemathesis.cli import schemathesis; schemathesis()"
    path = {"SCHEMATHESIS_HOOKS": "openapi_hooks", "PYTHONPATH": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment() | path,
        cwd=report.parent,
        capture_output=True,
        text=True,
        timeout=int(os.environ.get("DALASI_OPENAPI_TIMEOUT", "3600")),
    )
    assert report.exists(), ended.stdout[-3000:] + ended.stderr[-3000:]
    return read(report)


def read(report):
    requests, seen, failures, faults = collections.Counter(), collections.defaultdict(set), set(), []
    for line in report.read_text().splitlines():
        for kind, event in json.loads(line).items():
            if kind in ("NonFatalError", "FatalError", "InternalError"):
                faults.append(f"{kind}: {json.dumps(event)[:500]}")
            recorder = event.get("recorder") if kind == "ScenarioFinished" else None
            if not recorder:
                continue
            for case, interaction in recorder.get("interactions", {}).items():
                label = recorder["cases"][case]["value"] if case in recorder.get("cases", {}) else {}
                name = f"{label.get('method', '?').upper()} {label.get('path', recorder['label'])}"
                requests[name] += 1
                if answer := interaction.get("response"):
                    seen[name].add(str(answer["status_code"]))
            for case, checks in recorder.get("checks", {}).items():
                for check in checks:
                    if check["status"] == "failure":
                        failure = check["failure_info"]["failure"]
                        sent = recorder.get("interactions", {}).get(case, {}).get("request", {})
                        place = f"{sent.get('method')} {sent.get('uri')}"
                        failures.add(f"{check['name']} at {place}: {failure.get('title')} {failure.get('message')}"[:600])
    return requests, seen, sorted(failures) + faults


def unseen_statuses(seen):
    """`operation status` of what is described and was not answered."""
    for path, operations in DOCUMENT["paths"].items():
        for verb, operation in operations.items():
            for status in sorted(set(operation["responses"]) - seen[f"{verb.upper()} {path}"] - NEVER_HERE):
                yield f"{operation['operationId']} {status}"


def never_seen(proof, unseen):
    """What no run has seen, once there were examples enough to say so."""
    examples = sum(proof.earlier("count")) + proof.wanted
    never = set(unseen).intersection(*proof.earlier("unseen"))
    return sorted(never) if examples >= JUDGED_EXAMPLES else []


def test_the_server_is_as_described(new_server, mail_server, receiver, database, tmp_path):
    server = new_server(options=PLAIN + mail_server.options)
    names = {
        operation["operationId"]: f"{verb.upper()} {path}"
        for path, operations in DOCUMENT["paths"].items()
        for verb, operation in operations.items()
    }
    with Proof("D1", database, GATE_EXAMPLES) as proof:
        requests, seen, failures = run(server, tmp_path / "report.ndjson", proof.wanted, proof.seed)
        for failure in failures:
            proof.violation(failure)
        for name in names.values():
            assert requests[name], f"{name} was never asked"
        answered = [*asked_by_hand(server, receiver), *asked_with_too_long_a_body(server)]
        answered += asked_once_too_often(new_server(options=SLOW))
        if proof.tier != "gate":
            answered += asked_with_a_body_that_never_comes(server)
        for operation, status in answered:
            seen[names[operation]].add(str(status))
        unseen = list(unseen_statuses(seen))
        proof.note("unseen", unseen)
        print(f"{sum(requests.values())} requests; documented and never seen: {', '.join(unseen) or 'nothing'}")
        for status in never_seen(proof, unseen):
            proof.violation(f"{status} is described, and nothing brings it about")
        proof.reached = proof.wanted
        proof.control("a status that nobody brings about", bool(list(unseen_statuses(collections.defaultdict(set)))))
        # The negative control: a description that knows one field less.
        changed = json.loads(json.dumps(DOCUMENT))
        del changed["components"]["schemas"]["Balance"]["properties"]["pending_balance"]
        changed["components"]["schemas"]["Balance"].get("required", []).remove("pending_balance")
        described = tmp_path / "changed.json"
        described.write_text(json.dumps(changed))
        only = ("--include-operation-id", "get_balance")
        _, _, failures = run(server, tmp_path / "control.ndjson", 2, proof.seed, str(described), "coverage", only)
        proof.control("an undeclared field", any("response_schema_conformance" in failure for failure in failures))
        planted = new_server(planted="cursor_breaks")
        only = ("--include-operation-id", "list_products")
        report = tmp_path / "planted.ndjson"
        _, _, failures = run(planted, report, proof.wanted, proof.seed, phases="coverage,fuzzing", include=only)
        proof.control("cursor_breaks", any("not_a_server_error" in failure for failure in failures))
