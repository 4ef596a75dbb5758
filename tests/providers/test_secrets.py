"""References resolve to secrets or are refused; neither is ever shown."""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path

import pytest

from holdfast.domain.secret_references import is_reference
from holdfast.errors import InvalidConfiguration, SecretUnavailable
from holdfast.providers.secrets import MAX_SECRET_BYTES, SecretResolver

CANARY = "canary-5f1c"
VARIABLES = {
    "HOLDFAST_SECRET_KEY": CANARY,
    "HOLDFAST_SECRET_EMPTY": "",
    "HOLDFAST_SECRET_SPACED": f"{CANARY} {CANARY}",
    "HOLDFAST_OPERATOR_TOKEN": CANARY,
    "HOME": CANARY,
}


def resolver(folder: Path | None = None, prefix: str = "HOLDFAST_SECRET_") -> SecretResolver:
    return SecretResolver(VARIABLES.get, prefix, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    made.mkdir()
    (made / "mem0").write_text(f"{CANARY}\n")
    (made / "below").mkdir()
    (made / "below" / "key").write_text(CANARY)
    (tmp_path / "outside").write_text(CANARY)
    return made


def test_a_variable_whose_name_begins_as_allowed_is_told() -> None:
    assert resolver().resolve("env://HOLDFAST_SECRET_KEY", "config.key").revealed() == CANARY
    assert resolver(prefix="HO").resolve("env://HOME", "config.key").revealed() == CANARY


def test_a_file_in_the_folder_is_told_without_the_line_end_after_it(folder: Path) -> None:
    assert resolver(folder).resolve("file://mem0", "k").revealed() == CANARY
    assert resolver(folder).resolve("file://below/key", "k").revealed() == CANARY
    assert resolver(folder).resolve(f"file://{folder}/mem0", "k").revealed() == CANARY


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "current").symlink_to("below")
    (folder / "key").symlink_to("current/key")
    assert resolver(folder).resolve("file://key", "k").revealed() == CANARY


@pytest.mark.parametrize(
    "reference",
    [
        "env://HOLDFAST_SECRET_UNSET",
        "env://HOLDFAST_SECRET_EMPTY",
        "env://HOLDFAST_SECRET_SPACED",
        "env://HOLDFAST_OPERATOR_TOKEN",
        "env://HOME",
        f"env://{CANARY}",
        "env://",
        "file://",
        "file://nothing",
        "file://../outside",
        "file://below",
        "file:///etc/passwd",
        "file://a\x00b",
        "secret://mem0",
        "http://127.0.0.1/",
        CANARY,
        "",
    ],
)
def test_everything_else_is_refused_and_never_shown(folder: Path, reference: str) -> None:
    with pytest.raises(SecretUnavailable) as told:
        resolver(folder).resolve(reference, "config.key")
    shown = "".join(traceback.format_exception(told.value))
    assert str(told.value).startswith("config.key: ")
    assert CANARY not in shown.replace("CANARY", "")


def test_a_reference_that_is_a_slip_is_not_shown(folder: Path) -> None:
    with pytest.raises(SecretUnavailable) as told:
        resolver(folder).resolve(f"env://{CANARY}", "config.key")
    assert CANARY not in str(told.value)


def test_without_a_folder_no_file_is_told(folder: Path) -> None:
    with pytest.raises(SecretUnavailable, match="HOLDFAST_SECRETS_DIR"):
        resolver().resolve(f"file://{folder}/mem0", "k")


def test_a_link_that_leads_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "sly").symlink_to(folder.parent / "outside")
    with pytest.raises(SecretUnavailable, match="outside HOLDFAST_SECRETS_DIR"):
        resolver(folder).resolve("file://sly", "k")


@pytest.mark.parametrize("name", ["holdfast_operator_token", "HOLDFAST_STORE", "holdfast_key"])
def test_what_opens_this_service_is_not_for_anybody_elses(folder: Path, name: str) -> None:
    (folder / name).write_text(CANARY)
    (folder / "renamed").symlink_to(name)
    for reference in (f"file://{name}", "file://renamed"):
        with pytest.raises(SecretUnavailable, match="Holdfast's own"):
            resolver(folder).resolve(reference, "k")


def test_a_file_that_no_secret_is_in_is_refused(folder: Path) -> None:
    (folder / "empty").write_text("\n")
    (folder / "large").write_text("x" * (MAX_SECRET_BYTES + 1))
    (folder / "bytes").write_bytes(b"\xff\xfe")
    os.mkfifo(folder / "pipe")
    for name in ("empty", "large", "bytes", "pipe"):
        with pytest.raises(SecretUnavailable):
            resolver(folder).resolve(f"file://{name}", "k")


def test_the_form_of_a_reference_is_known_without_looking() -> None:
    assert is_reference("env://X")
    assert is_reference("file:///x")
    assert not any(map(is_reference, ("env://", "file://", "env:X", "sk-123", "", None, 3, "env://a\nb")))


NEVER = {
    "env://HOME": "begin with 'HOLDFAST_SECRET_'",
    "env://HOLDFAST_SECRET_": "begin with",
    "file://../elsewhere": "outside HOLDFAST_SECRETS_DIR",
    "file:///etc/passwd": "outside HOLDFAST_SECRETS_DIR",
    "file://holdfast_operator_token": "Holdfast's own",
    "sk-123": "env://NAME",
}


@pytest.mark.parametrize("reference", sorted(NEVER))
def test_a_reference_that_can_never_be_resolved_is_told_by_its_form(tmp_path: Path, reference: str) -> None:
    with pytest.raises(InvalidConfiguration, match=re.escape(NEVER[reference])) as told:
        resolver(tmp_path).check(reference, "config.key")
    assert told.value.field == "config.key"


def test_one_that_may_be_resolved_some_day_is_not_looked_for(tmp_path: Path) -> None:
    for reference in ("env://HOLDFAST_SECRET_LATER", "file://later", f"file://{tmp_path}/later"):
        resolver(tmp_path).check(reference, "config.key")
    with pytest.raises(InvalidConfiguration, match="HOLDFAST_SECRETS_DIR"):
        resolver().check("file://later", "config.key")
