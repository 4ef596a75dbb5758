"""The provider `gateway`: what a binding says of the service, and what it must be to be asked."""

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
from holdfast.ports.provider import Adapter, Beneath
from holdfast.providers.configured import ConfiguredProvider, OutsideConfiguration, SecretReference
from holdfast.providers.gateway.adapter import GatewayAdapter
from holdfast.providers.gateway.everos import EverosRoutes
from holdfast.providers.gateway.routes import GatewayRoutes
from holdfast.providers.gateway.service import Service, Wire

# What EverOS takes for an app or a project, with room for the digest behind it.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$", max_length=80)]

_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)+", re.ASCII)


class GatewayConfiguration(OutsideConfiguration):
    allow_insecure: bool = Field(
        default=False, description="Whether http:// may be spoken beyond this machine, the key in it for all to read."
    )
    url: str = Field(
        description="The service's address, such as https://memory.example.org; no name or password in it."
    )
    api: Literal["holdfast", "everos"] = Field(
        default="holdfast", description="What it speaks: the gateway's own routes, or EverOS's."
    )
    everos_prefix: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="/api/v2/memory", description="Where EverOS's routes are there; older services have /api/v1/memory."
    )
    user_id: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)] = Field(
        description="The user there, whose key it is."
    )
    user_key: SecretReference | None = Field(
        default=None, description="The key, as a reference. EverOS itself has none."
    )
    app_id: Name = Field(
        default="holdfast", description="What the apps there are called, each with a digest behind it."
    )
    project_id: Name = Field(default="default", description="The project there.")
    keep_metadata: bool = Field(
        default=True, description="Whether messages carry source, summary and metadata; EverOS keeps none."
    )

    @field_validator("everos_prefix")
    @classmethod
    def _plain_path(cls, given: str) -> str:
        # Nothing that a service or something before it would read as another place.
        if _PATH.fullmatch(given) and not {".", ".."} & set(given.split("/")):
            return given
        raise ValueError(
            "must be a path such as /api/v1/memory: each part of it letters, digits and - . _ ~ after a slash, none of"
            " them . or .., and nothing behind"
        )

    @field_validator("url")
    @classmethod
    def _usable(cls, given: str, info: ValidationInfo) -> str:
        try:
            url = checked_url(given, "url")
        except InvalidInput as error:
            problem = error.problem.replace("give the key as `key`, or as HOLDFAST_KEY, instead", "give it as user_key")
        else:
            if url.startswith("https://") or info.data.get("allow_insecure") or _is_loopback(url):
                return url
            problem = "must be https:// beyond this machine: the key would go in the open; allow_insecure allows it"
        raise ValueError(problem)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class GatewayProvider(ConfiguredProvider[GatewayConfiguration]):
    key: ClassVar[str] = "gateway"
    description: ClassVar[str] = "A memory behind a service that speaks the gateway's HTTP interface, or EverOS's."
    capabilities: ClassVar[Capabilities] = Capabilities(
        correction=True, provider_managed_extraction=True, async_extraction=True
    )
    configuration = GatewayConfiguration

    def opened(self, config: GatewayConfiguration, secrets: Mapping[str, Secret], beneath: Beneath | None) -> Adapter:
        key = secrets.get("user_key")
        wire = Wire(config.url, key, config.timeout_seconds)
        service: Service
        if config.api == "everos":
            service = EverosRoutes(wire, config.everos_prefix, config.user_id, config.project_id)
        else:
            service = GatewayRoutes(wire, config.user_id, key, config.project_id, keeps_metadata=config.keep_metadata)
        return GatewayAdapter(service, config.user_id, config.app_id)
