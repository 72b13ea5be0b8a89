"""Loaded by schemathesis (`SCHEMATHESIS_HOOKS`): the one check that takes the place of one of its own.

`positive_data_acceptance` wants every request that fits its schema to be accepted. Many are refused here by rules that
no schema can say: an id that names nothing, a minimum above its maximum, a key that was used before, a state. The
contract answers those with 400, as it does malformed ones. So this check asks for as much as can be asked: what fits its
schema is never refused for its form.
"""

import schemathesis
from schemathesis import GenerationMode

# Faults of form alone: a schema says all that there is to say about them. (That no text may hold U+0000 is said once for
# all texts, and not in each schema.)
OF_FORM = {"unknown_field", "wrong_type", "duplicate_key", "amount_must_be_string"}


@schemathesis.check
def refused_by_rules_alone(ctx, response, case):
    if response.status_code != 400 or case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    problem = response.json()
    assert problem["code"] != "invalid_json", problem
    of_form = [fault for fault in problem.get("details", []) if fault["code"] in OF_FORM]
    assert not of_form, f"it fits its schema, and is refused for its form: {of_form}"
