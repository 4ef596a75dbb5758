"""`agent init`: writes a first config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from holdfast.cli.agent.options import AgentOptions
from holdfast.cli.exits import UsageError
from holdfast.cli.json_output import print_json
from holdfast.cli.options import Json, OnlyText, expand_options, option
from holdfast.cli.store_access import server_settings
from holdfast.cli.terminal_safety import on_one_line, quote_word
from holdfast.settings import read_settings

Gateway = Annotated[OnlyText, option("--gateway", "URL", "Also use this Memory Gateway.")]
User = Annotated[OnlyText, option("--user", "NAME", "The user there; created unless --key-file is given.")]
KeyFile = Annotated[Path | None, option("--key-file", "FILE", "A file with the key of an existing user.")]


@expand_options
def init(
    chosen: AgentOptions, gateway: Gateway = None, user: User = None, key_file: KeyFile = None, as_json: Json = False
) -> None:
    """Write a commented config file, .holdfast/config.json, in the agent's folder.

    With --gateway and --user it also creates that user there, and stores the key in a file that only you can read. For
    that it needs the gateway's operator token: in HOLDFAST_KEY, or in the file beside the store. Existing files are not
    overwritten.
    """
    from holdfast.agent.initialize import AgentModelChoice, GatewayChoice, initialize
    from holdfast.domain.location import checked_url

    if (gateway is None) != (user is None):
        raise UsageError("--gateway and --user go together: the server, and the user whose memory it is")
    if key_file is not None and gateway is None:
        raise UsageError("--key-file holds a gateway's key; name the gateway with --gateway and --user")
    base_url = None if chosen.base_url is None else checked_url(chosen.base_url, "--base-url")
    model = None
    if (chosen.provider, chosen.model, base_url) != (None, None, None):
        model = AgentModelChoice(
            chosen.provider or ("scripted" if base_url is None else "openai"), chosen.model, base_url
        )
    connected = None if gateway is None or user is None else GatewayChoice(gateway, user, key_file)
    settings = read_settings() if connected is None else server_settings(connected.url)
    done = initialize(chosen.workspace, settings, model, connected)
    if as_json:
        print_json(
            {
                "config": str(done.config),
                "key_file": None if done.key_file is None else str(done.key_file),
                "user_created": done.created,
            }
        )
        return
    print(f"Wrote {on_one_line(_relative_path(done.config))}. Its comments explain the settings.")
    if done.key_file is not None and connected is not None:
        who, where = on_one_line(connected.user_id), on_one_line(_relative_path(done.key_file))
        became = f"Created the user {who} at" if done.created else f"You are {who} at"
        print(f"{became} {connected.url}. The key is in {where}, which only you can read.")
    folder = "" if chosen.workspace is None else f" --workspace {quote_word(str(chosen.workspace))}"
    print(f"Next: holdfast agent chat{folder}")


def _relative_path(path: Path) -> str:
    """The path relative to the current folder, if it is inside."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
