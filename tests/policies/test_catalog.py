"""The list of policies, and the page about them.

After a wanted change: ``GOLDEN=write .venv/bin/pytest tests/policies/test_catalog.py``.
"""

import os
import re
from collections import Counter

import pytest

from policies.catalog import POLICIES, THEMES, policies_of
from policies.judging.judge import WAIVERS
from policies.judging.levels import Level, Severity
from policies.judging.policy import DOCUMENTATION, Policy
from policies.judging.settings import StackPolicies, Waiver
from spec.schema import field_texts
from tests.components.conftest import ROOT

PAGE = ROOT / DOCUMENTATION
ALL = (*POLICIES, WAIVERS)
HEAD = """\
# The policies

What a review of a change refuses, and why. `policies/` holds them, and this page is made of them
(tests/policies/test_catalog.py writes it). `make policies` runs them without an engine, a cluster or credentials,
`pulumi preview --policy-pack policies` on the plan of the engine.

## How they are read

**Levels.** A `mandatory` violation refuses the change, an `advisory` one is a word in the review, `disabled` asks
nothing. Each policy has a level for `dev` and one for `prod`, which is the stack's `environment`. A stack may have
others, in `policies/settings.yaml`; a `--policy-pack-config` goes before that file.

**Undecided.** A preview does not know every value. A policy that needs such a value says `cannot decide` and what it
misses; it never takes it for a good one. That is `mandatory` in prod and `advisory` in dev unless the stack's
`undecided` says otherwise, and never above the policy's own level. Most often the way out is to give the value instead
of taking it from another resource.

**Failures.** A policy that fails itself refuses the change, under its own name; the others are asked all the same.

**Settings** of a stack in `policies/settings.yaml`:

| field | meaning |
|---|---|
"""
WAIVERS_HEAD = """
**Waivers.** `policies/waivers.yaml` lets one resource break one policy for a while, under the eyes of whoever reviews
that file. The violation stays in the review as a word. When the last day is over it refuses again, and so does the
waiver itself until somebody takes it out. A waiver that waives nothing is a word.

| field | meaning |
|---|---|
"""


def fields(spec: type[StackPolicies] | type[Waiver]) -> str:
    """Rows of a table of fields."""
    texts, known = field_texts(spec), [str(field.alias) for field in spec.model_fields.values()]
    rows = {name: texts[name].replace("``", "`").rstrip(".").replace("|", "\\|") for name in known}
    return "".join(f"| `{name}` | {text} |\n" for name, text in rows.items())


def section(policy: Policy) -> str:
    """What the page says of one policy."""
    text = (
        f"{policy.rule}. {policy.why}\n\n- Fix: {policy.fix}\n"
        f"- Level: {policy.dev} in dev, {policy.prod} in prod; severity {policy.severity}\n"
    )
    # Markdown takes a placeholder in angle brackets for HTML, and an asterisk for emphasis, except in code.
    parts = text.split("`")
    parts[::2] = [re.sub(r"([<*])", r"\\\1", part) for part in parts[::2]]
    return f"\n### {policy.name}\n\n" + "`".join(parts)


def page() -> str:
    """The whole page."""
    themes = [
        f"\n## {theme}\n" + "".join(section(policy) for policy in policies_of(module))
        for theme, module in THEMES.items()
    ]
    end = f"\n## The waivers themselves\n{section(WAIVERS)}"
    return HEAD + fields(StackPolicies) + WAIVERS_HEAD + fields(Waiver) + "".join(themes) + end


def test_the_page_says_what_the_policies_say() -> None:
    text = page()
    if os.environ.get("GOLDEN") == "write":
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "GOLDEN=write .venv/bin/pytest tests/policies/test_catalog.py"


def test_every_address_leads_to_a_heading() -> None:
    headings = re.findall(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [f"{DOCUMENTATION}#{heading}" for heading in headings] == [policy.url for policy in ALL]


def test_names_are_unique() -> None:
    assert {name: count for name, count in Counter(policy.name for policy in ALL).items() if count > 1} == {}


def test_every_theme_has_policies() -> None:
    assert [theme for theme, module in THEMES.items() if not policies_of(module)] == []


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
class TestPolicy:
    def test_the_name_is_of_lower_case_words_with_dashes(self, policy: Policy) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", policy.name)

    def test_it_has_one_check(self, policy: Policy) -> None:
        checks = [check for check in (policy.check_object, policy.check_estate) if check]
        assert len(checks) == (0 if policy is WAIVERS else 1)

    def test_its_texts_are_there_and_fit_together(self, policy: Policy) -> None:
        # The page and the engine put a full stop after the rule, and none after the fix.
        assert re.fullmatch(r"[A-Z].{10,}[^.\s]", policy.rule)
        assert re.fullmatch(r"[A-Z].{20,}\.", policy.why)
        assert re.fullmatch(r"[a-z].{10,}[^.\s]", policy.fix)

    def test_its_levels_and_its_severity_are_such(self, policy: Policy) -> None:
        assert isinstance(policy.severity, Severity)
        assert {type(policy.dev), type(policy.prod)} == {Level}
        assert {policy.dev, policy.prod} != {Level.DISABLED}
