"""The settings in `doctor`: every one with its origin, unknown names, and tokens that are easy to guess."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.cli.health import Check, CheckHealth
from holdfast.cli.options import StoreOptions
from holdfast.domain.call_errors import likely_name
from holdfast.domain.location import is_server_url, redact_location, refuse_mistyped_server
from holdfast.domain.secret_strength import find_weakness
from holdfast.errors import InvalidInput
from holdfast.settings import Settings, SettingSource, list_settings, list_unknown_variables, read_settings

_PREFIX = "HOLDFAST_"
_PREFIXES = (_PREFIX, "MEMORY_GATEWAY_")
_STRONG_ONE = "`openssl rand -hex 32` prints a strong one"
_GUESSABLE = ("operator_token", "key")
_OPTIONS = {"HOLDFAST_STORE": "store", "HOLDFAST_EMBEDDER": "embedder"}


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting as it is shown. Secrets are "set", and addresses have no password."""

    name: str
    value: str | None
    origin: str


def shown_settings(chosen: StoreOptions) -> list[ShownSetting]:
    """Return every setting: first those that differ from their default, with the options of this command."""
    shown = [_show(source, chosen) for source in list_settings()]
    return sorted(shown, key=lambda each: each.origin == "default")


def _show(source: SettingSource, chosen: StoreOptions) -> ShownSetting:
    option = _OPTIONS.get(source.variable)
    typed: str | None = getattr(chosen, option) if option is not None else None
    if option is not None and typed is not None:
        return ShownSetting(source.variable, _without_secrets(typed), f"option --{option}")
    if source.is_secret:
        return ShownSetting(source.variable, "set" if source.is_set else None, source.origin)
    return ShownSetting(source.variable, _without_secrets(source.value), source.origin)


def _without_secrets(value: str | None) -> str | None:
    if value is None:
        return None
    try:
        refuse_mistyped_server(value)
    except InvalidInput:
        return "set, but no URL"  # and it may hold a password
    redacted = redact_location(value)
    return redacted.partition("?")[0] if is_server_url(redacted) else redacted


def check_settings(chosen: StoreOptions) -> Iterator[Check]:
    """Say which settings differ from their default, and warn of unknown names and weak tokens."""
    shown = shown_settings(chosen)
    changed = [each for each in shown if each.origin != "default"]
    values = "; ".join(f"{each.name.removeprefix(_PREFIX).lower()} {each.value} ({each.origin})" for each in changed)
    rest = f"{len(shown) - len(changed)} have their default"
    advice = "`holdfast doctor --settings` shows all"
    yield Check("settings", CheckHealth.OK, f"{values}; {rest}" if values else f"all {rest}", advice)
    settings = read_settings()
    yield from _check_names(settings)
    yield from _check_tokens(settings)


def _check_names(settings: Settings) -> Iterator[Check]:
    known = [source.variable for source in list_settings()]
    for name in list_unknown_variables(settings):
        near = _find_near_name(name.upper(), known)
        advice = f"rename it to {near}" if near else "remove it; `holdfast doctor --settings` lists all"
        yield Check("settings", CheckHealth.WARN, f"{name:.80} is no setting, and does nothing", advice)


def _find_near_name(name: str, known: list[str]) -> str | None:
    """Return the setting that is probably meant: the only one with all words of the name, else the closest."""
    prefix = next(each for each in _PREFIXES if name.startswith(each))
    words = name.removeprefix(prefix).lower()
    settings = [each.removeprefix(prefix).lower() for each in known if each.startswith(prefix)]
    complete = [each for each in settings if set(words.split("_")) <= set(each.split("_"))]
    near = complete[0] if len(complete) == 1 else likely_name(words, settings)
    return None if near is None else f"{prefix}{near}".upper()


def _check_tokens(settings: Settings) -> Iterator[Check]:
    for name in _GUESSABLE:
        token = getattr(settings, name)
        if token is not None and (weakness := find_weakness(token.get_secret_value())) is not None:
            detail = f"{_PREFIX}{name.upper()} {weakness}: whoever guesses it has the access of its owner"
            yield Check("settings", CheckHealth.WARN, detail, _STRONG_ONE)
