"""Keys of users, agents and operators, for `user` and `credential`. A key is printed once, alone on stdout."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from holdfast.cli.exits import ExitCode
from holdfast.cli.json_output import print_json
from holdfast.cli.terminal_safety import on_one_line
from holdfast.domain.users import Issued, User
from holdfast.errors import OutcomeUnknown, UserExists

log = logging.getLogger("holdfast.cli")

Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The holder of a key: `noun` in JSON, `title` in messages. `again` is the command that makes another key."""

    name: str
    noun: str
    title: str
    again: str
    shows_role: bool = False

    def issue(self, issue: Callable[..., Issued], as_json: bool, **options: Any) -> None:
        """Issue a key and print it. It is stored nowhere else, so a failure to print it is logged."""
        issued = self._call(issue, options)
        one = issued.user
        try:
            if as_json:
                print_json({self.noun: one, "key": issued.key, "created": issued.created, "rotated": issued.rotated})
            else:
                done = "Created" if issued.created else "There is a new key for"
                role = f" ({one.role or 'no role'}) of {on_one_line(one.space)}" if self.shows_role else ""
                print(f"{done} {self.title}{role}. The key is shown only once; keep it:", file=sys.stderr, flush=True)
                print(issued.key)
            sys.stdout.flush()
        except OSError:
            log.warning("the key could not be printed and is lost; `%s` makes another", self.again)
            raise

    def _call(self, issue: Callable[..., Issued], options: dict[str, Any]) -> Issued:
        try:
            return issue(self.name, **options)
        except UserExists:
            problem = f"{self.title} has a key already, perhaps a revoked one; `{self.again}` makes a new one"
        except OutcomeUnknown:
            log.warning("if it was done, the key is lost; `%s` makes another", self.again)
            raise
        raise UserExists(problem)

    def revoke(self, revoke: Callable[..., User], yes: bool, as_json: bool, **options: Any) -> None:
        """Ask, and revoke the key."""
        sure = yes or typer.confirm(f"Revoke the key of {self.title}?", err=True)
        revoked = revoke(self.name, **options) if sure else None
        if as_json:
            print_json({self.noun: revoked})
        elif revoked is None:
            print("Nothing was changed.")
        else:
            print(f"Revoked {self.title}. `{self.again}` makes a new key.")
        if revoked is None:
            raise typer.Exit(ExitCode.PROBLEM)
