"""`binding` and `provider`: manage which memory serves whom; each command with valid and with invalid input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serving import USER_KEY, served

from .conftest import Holdfast


@pytest.fixture
def acme(holdfast: Holdfast) -> Holdfast:
    """The command line with a store in which the company acme has a second binding."""
    ran = holdfast("binding", "create", "second", "local", "--space", "acme")
    assert ran.code == 0, ran.err

    def run(*arguments: str) -> object:
        return holdfast(*arguments, "--space", "acme")

    return run  # type: ignore[return-value]


def test_a_company_begins_with_our_own_store(holdfast: Holdfast) -> None:
    holdfast("store", "init")
    shown = holdfast("binding", "list")
    assert shown.code == 0
    assert "default" in shown.out
    assert "everybody else" in shown.out
    assert holdfast("binding", "list", "--json").json["targets"][0]["binding_key"] == "default"
    resolved = holdfast("binding", "resolve", "--agent", "builder")
    assert "company_default" in resolved.out
    assert "agent_override, company_default" in resolved.out


def test_a_binding_is_made_shown_changed_switched_and_taken_away(acme: Holdfast) -> None:
    shown = acme("binding", "show", "second")
    assert 'filter_by ["namespace"]' in shown.out
    assert "issue_comment_capture" in shown.out.partition("hooks off")[2]
    changed = acme(
        "binding", "update", "second", "--hook", "issue_comment_capture=on", "--config", '{"filter_by": []}', "--json"
    )
    assert (changed.json["revision"], changed.json["config"]) == (2, {"filter_by": []})
    assert changed.json["hooks"]["issue_comment_capture"] is True
    late = acme("binding", "update", "second", "--hook", "manual_capture=off", "--revision", "1")
    assert (late.code, "is at revision 2, not 1" in late.err) == (5, True)
    assert "enabled    no" in acme("binding", "disable", "second").out
    resolved = acme("binding", "resolve", "--key", "second")
    assert "`holdfast binding enable second --space acme` enables it." in resolved.out
    assert "enabled    yes" in acme("binding", "enable", "second").out
    declined = acme("binding", "delete", "second")
    assert (declined.code, "add --yes" in declined.err) == (2, True)
    assert acme("binding", "delete", "second", "--yes").out == "Deleted second.\n"
    assert acme("binding", "show", "second").code == 3


def test_deleting_what_serves_says_whom_and_what_serves_them_now(acme: Holdfast) -> None:
    acme("binding", "override", "builder", "second")
    overridden = acme("binding", "delete", "second", "--yes")
    assert overridden.out == (
        "Deleted second.\nIt served the agent builder. default, the space's default, serves them now.\n"
    )
    acme("binding", "create", "second", "local")
    acme("binding", "override", "builder", "default")
    told = acme("binding", "delete", "default", "--yes").out
    assert told == (
        "Deleted default.\nIt served everybody without a binding of their own, the agent builder. No binding serves"
        " them now; `holdfast binding default KEY --space acme` sets one.\n"
    )
    assert acme("binding", "resolve", "--agent", "builder", "--json").json["source"] == "unconfigured"
    acme("binding", "default", "second")
    gone = acme("binding", "delete", "second", "--yes", "--json").json
    assert (gone["deleted"], [one["kind"] for one in gone["served"]]) == ("second", ["company"])


def test_whom_a_binding_serves_is_set_shown_and_cleared(acme: Holdfast) -> None:
    assert acme("binding", "override", "builder", "second").out == "second serves the agent builder.\n"
    assert acme("binding", "resolve", "--agent", "builder", "--json").json["source"] == "agent_override"
    assert "agent builder" in acme("binding", "list").out
    cleared = acme("binding", "override", "builder", "--clear")
    assert cleared.out == "No binding of its own serves the agent builder.\n"
    assert acme("binding", "default", "second").out == "second serves the space acme.\n"
    assert acme("binding", "default", "--json").json == {"binding_key": "second"}
    acme("binding", "default", "--clear")
    assert "`holdfast binding default KEY --space acme` sets one" in acme("binding", "resolve").out


def test_a_configuration_comes_from_a_file(acme: Holdfast, quiet_environment: Path) -> None:
    (quiet_environment / "config.json").write_text('{"filter_by": ["project"]}')
    made = acme("binding", "create", "third", "local", "--config", "@config.json", "--json")
    assert made.json["config"]["filter_by"] == ["project"]


WRONG = [
    (("binding", "create", "second", "local"), 5, "'second'"),
    (("binding", "create", "third", "nope"), 2, "there is no provider 'nope'; use one of"),
    (("binding", "create", "No Key", "local"), 2, "KEY: 'No Key' must be lowercase"),
    (("binding", "create", "third", "local", "--config", "{"), 2, "--config is not JSON"),
    (("binding", "create", "third", "local", "--config", "[]"), 2, "--config must be a JSON object"),
    (("binding", "create", "third", "local", "--config", "@none.json"), 2, "none.json cannot be read"),
    (("binding", "create", "third", "local", "--config", '{"x": 1}'), 2, "config['x']"),
    (("binding", "create", "third", "local", "--hook", "manual_capture"), 2, "write a hook and on or off"),
    (("binding", "create", "third", "local", "--hook", "after_lunch=on"), 2, "there is no 'after_lunch'; use one of"),
    (("binding", "create", "third"), 2, "PROVIDER"),
    (("binding", "show", "none"), 3, "there is no binding 'none'"),
    (("binding", "update", "second"), 2, "there is nothing to change"),
    (("binding", "update", "none", "--hook", "manual_capture=on"), 3, "there is no binding 'none'"),
    (("binding", "enable", "none"), 3, "there is no binding 'none'"),
    (("binding", "disable", "none"), 3, "there is no binding 'none'"),
    (("binding", "delete", "none", "--yes"), 3, "there is no binding 'none'"),
    (("binding", "default", "none"), 3, "there is no binding 'none'"),
    (("binding", "default", "second", "--clear"), 2, "not both"),
    (("binding", "override", "builder", "none"), 3, "there is no binding 'none'"),
    (("binding", "resolve", "--key", "none"), 3, "there is no binding 'none'"),
    (("binding", "list", "--store", "none.db"), 6, "there is no store at none.db"),
    (("binding", "list", "--store", "http://127.0.0.1:1"), 6, "/companies/…/memory"),
]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    WRONG,
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else str(value)[:20],
)
def test_what_cannot_be_done_says_what_to_do(acme: Holdfast, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = acme(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_provider_that_is_broken_is_shown_with_what_is_wrong(
    holdfast: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "jar_memory-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jar-memory\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[holdfast.providers]\njar = no_such_module_at_all:Jar\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    shown = holdfast("provider", "list")
    assert shown.code == 0
    assert "local" in shown.out
    assert "no_such_module_at_all" in shown.out
    problem = "'jar' is installed but cannot be used: ModuleNotFoundError while it was loaded"
    for told in (("provider", "show", "jar"), ("provider", "check", "jar"), ("binding", "create", "b", "jar")):
        ran = holdfast(*told)
        assert (ran.code, ran.out) == (2, "")
        assert problem in ran.err
    (broken,) = holdfast("provider", "list", "--json").json["broken"]
    assert (broken["name"], broken["problem"]) == ("jar", "ModuleNotFoundError while it was loaded")


def test_providers_are_shown_with_what_they_can_do(holdfast: Holdfast) -> None:
    assert "local" in holdfast("provider", "list").out
    found = {each["key"]: each for each in holdfast("provider", "list", "--json").json["providers"]}
    assert found["local"]["outside"] is False
    shown = holdfast("provider", "show", "local")
    assert "correction" in shown.out
    assert "filter_by" in shown.out
    unknown = holdfast("provider", "show", "nope")
    assert (unknown.code, "there is no provider 'nope'; use one of" in unknown.err) == (2, True)


def test_a_configuration_is_checked_before_it_is_bound(holdfast: Holdfast) -> None:
    checked = holdfast("provider", "check", "local", "--config", '{"filter_by": ["run"]}')
    assert (checked.code, "The configuration is valid." in checked.out) == (0, True)
    told = holdfast("provider", "check", "local", "--json").json
    assert told["config"] == {"filter_by": ["namespace"]}
    wrong = holdfast("provider", "check", "local", "--config", '{"filter_by": ["mood"]}')
    assert (wrong.code, "config.filter_by" in wrong.err) == (2, True)
    assert holdfast("provider", "check", "nope").code == 2


def test_a_provider_that_reaches_outside_is_asked_before_it_is_bound(
    holdfast: Holdfast, quiet_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "env://NAME or file://PATH" in holdfast("provider", "show", "gateway").out
    with served(str(quiet_environment / "served.db")) as server:
        config = {"url": server.url, "user_id": "ana", "user_key": "env://HOLDFAST_SECRET_ANA"}
        given = ("provider", "check", "gateway", "--config", json.dumps(config))
        assert "--connect also queries the provider." in holdfast(*given).out
        unset = holdfast(*given, "--connect")
        assert (unset.code, unset.out) == (2, "")
        assert "config.user_key" in unset.err
        monkeypatch.setenv("HOLDFAST_SECRET_ANA", USER_KEY)
        asked = holdfast(*given, "--connect")
        assert (asked.code, "It answers, in " in asked.out) == (0, True), asked.err
        assert USER_KEY not in asked.out + asked.err
        monkeypatch.setenv("HOLDFAST_SECRET_ANA", "uk_wrong")
        wrong = holdfast(*given, "--connect", "--json")
        assert (wrong.code, wrong.out) == (9, "")
        assert wrong.error["code"].startswith("provider_")
        assert "uk_wrong" not in wrong.err
        plain = holdfast("provider", "check", "gateway", "--config", json.dumps({**config, "user_key": USER_KEY}))
        assert (plain.code, USER_KEY not in plain.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        (("binding", "show", "none"), "binding_not_found", "binding_key"),
        (("binding", "disable", "none"), "binding_not_found", "binding_key"),
        (("binding", "create", "default", "local"), "binding_exists", "key"),
        (("binding", "create", "second", "nope"), "unknown_provider", "provider"),
        (("binding", "create", "second", "local", "--config", '{"x": 1}'), "invalid_configuration", "config['x']"),
    ],
)
def test_an_error_in_json_names_the_field(
    holdfast: Holdfast, arguments: tuple[str, ...], code: str, field: str
) -> None:
    holdfast("store", "init")
    told = holdfast(*arguments, "--json")
    assert (told.error["code"], told.error["field"]) == (code, field)
    assert "field" not in holdfast("jobs", "show", "job_none", "--json").error
