"""How much of the published SDK there is a server for: each of its calls is in the served OpenAPI, or the README names its resource
among those that are not there yet, and the answer says so."""

import ast
import inspect
import re
from pathlib import Path

from jokoor import Jokoor

README = Path(__file__).parents[2] / "README.md"
PLACEHOLDER = re.compile(r"\{[^}]*\}")


def resources():
    """The name of each resource of a client, with its class."""
    client = Jokoor("sk_test_any")
    return {name: type(value) for name, value in vars(client).items() if type(value).__module__.startswith("jokoor.resources")}


def calls(resource):
    """Verb and path of each call that its methods make."""
    for node in ast.walk(ast.parse(inspect.getsource(inspect.getmodule(resource)))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if isinstance(node.func.value, ast.Attribute) and node.func.value.attr == "_http":
            verb, path = node.func.attr, node.args[0]
            if verb == "request":
                verb, path = path.value.lower(), node.args[1]
            yield {"upload_file": "post"}.get(verb, verb), path_of(path)


def path_of(node):
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return "".join(parts).split("?")[0]
    assert isinstance(node, ast.Constant), ast.dump(node)
    return node.value.split("?")[0]


def test_what_is_not_there_is_named_and_says_so(api):
    served = {
        (verb, PLACEHOLDER.sub("{}", path))
        for path, operations in api.request("GET", "/openapi.json").json()["paths"].items()
        for verb in operations
    }
    found = {name: sorted(set(calls(resource))) for name, resource in resources().items()}
    assert sum(map(len, found.values())) > 100, "the SDK is written in another way"
    missing = {name: [call for call in all_calls if call not in served] for name, all_calls in found.items()}
    entirely = {name for name, some in missing.items() if some and len(some) == len(found[name])}
    partly = {name for name, some in missing.items() if some} - entirely
    assert partly == {"payouts"} and ("get", "/v1/payouts/balance") in served
    told = re.search(r"Not there yet: (.*?); and of `payouts`", README.read_text().replace("\n", " "))
    assert told and set(re.findall(r"`(\w+)`", told[1])) == entirely
    for verb, path in sorted(set(sum(missing.values(), []))):
        answer = api.request(verb.upper(), path.replace("{}", "any"), {} if verb in ("post", "put", "patch") else None)
        assert answer.status_code == 404 and answer.json()["code"] == "route_not_found", (verb, path, answer.text)
        assert "yet" in answer.json()["error"], (verb, path, answer.text)
