"""The provider `gateway`: the schema and validation of its configuration, and the opening of its adapter."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from holdfast.domain.contract import Capabilities
from holdfast.domain.location import checked_url
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.domain.secret import Secret
from holdfast.errors import InvalidInput
from holdfast.ports.provider import Adapter, NestedCall
from holdfast.providers.configuration import ConfiguredProvider, OutsideConfiguration, SecretReference
from holdfast.providers.gateway.adapter import GatewayAdapter
from holdfast.providers.gateway.everos import EverosRoutes
from holdfast.providers.gateway.routes import GatewayRoutes
from holdfast.providers.gateway.transport import RemoteMemoryService, ServiceConnection

# EverOS's syntax for an app or a project, with room for a digest suffix.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$", max_length=80)]

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+", re.ASCII)


class GatewayConfiguration(OutsideConfiguration):
    allow_insecure: bool = Field(
        default=False, description="Allow http:// to other machines, which sends the key unencrypted."
    )
    url: str = Field(
        description="The service's URL, such as https://memory.example.org, without user name or password."
    )
    api: Literal["holdfast", "everos"] = Field(
        default="holdfast", description="The service's API: the gateway's own routes, or EverOS's."
    )
    everos_prefix: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="/api/v2/memory", description="The path prefix of EverOS's routes; older services use /api/v1/memory."
    )
    user_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)] = Field(
        description="The user of the service that the key belongs to."
    )
    user_key: SecretReference | None = Field(
        default=None, description="The key, as a reference. EverOS itself has no keys."
    )
    app_id: Name = Field(default="holdfast", description="The prefix of app names in the service; a digest follows it.")
    project_id: Name = Field(default="default", description="The project in the service.")
    keep_metadata: bool = Field(
        default=True, description="Send source, summary and metadata with messages; EverOS stores none."
    )

    @field_validator("everos_prefix")
    @classmethod
    def _validate_prefix(cls, value: str) -> str:
        # Refuse any path that the service or a proxy could interpret as another one.
        if _PATH.fullmatch(value) and not {".", ".."} & set(value.split("/")):
            return value
        raise ValueError(
            "must be a path such as /api/v1/memory: segments of letters, digits and - . _ ~ after slashes, none of"
            " them . or .., and no query"
        )

    @field_validator("url")
    @classmethod
    def _validate_url(cls, value: str, info: ValidationInfo) -> str:
        try:
            url = checked_url(value, "url")
        except InvalidInput as error:
            problem = error.problem.replace("give the key as `key`, or as HOLDFAST_KEY, instead", "give it as user_key")
        else:
            if url.startswith("https://") or info.data.get("allow_insecure") or _is_loopback(url):
                return url
            problem = "must be https:// for another machine, or the key is sent unencrypted; allow_insecure permits it"
        raise ValueError(problem)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class GatewayProvider(ConfiguredProvider[GatewayConfiguration]):
    key: ClassVar[str] = "gateway"
    description: ClassVar[str] = "Memory in another service that implements the gateway's HTTP API, or EverOS's."
    capabilities: ClassVar[Capabilities] = Capabilities(
        correction=True, provider_managed_extraction=True, async_extraction=True
    )
    configuration = GatewayConfiguration

    def opened(
        self, config: GatewayConfiguration, secrets: Mapping[str, Secret], beneath: NestedCall | None
    ) -> Adapter:
        key = secrets.get("user_key")
        wire = ServiceConnection(config.url, key, config.timeout_seconds)
        service: RemoteMemoryService
        if config.api == "everos":
            service = EverosRoutes(wire, config.everos_prefix, config.user_id, config.project_id)
        else:
            service = GatewayRoutes(wire, config.user_id, key, config.project_id, keeps_metadata=config.keep_metadata)
        return GatewayAdapter(service, config.user_id, config.app_id)
