"""What somebody asked of an API server, from its audit log, beside what its role allows."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Audit", "Right", "rights_in"]

Object = dict[str, Any]


class Right(NamedTuple):
    """One verb on one resource; the name is empty where a rule does not limit it."""

    verb: str
    group: str
    resource: str
    name: str = ""


@dataclass(slots=True)
class Audit:
    """An audit log that knows only one user's requests."""

    directory: Path
    user: str
    flags: list[str] = field(init=False)

    def __post_init__(self) -> None:
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata", "users": [self.user]}, {"level": "None"}],
        }
        (self.directory / "policy.json").write_text(json.dumps(policy))
        self.flags = [
            f"--audit-policy-file={self.directory / 'policy.json'}",
            f"--audit-log-path={self.directory / 'audit.log'}",
        ]

    def entries(self) -> list[Object]:
        """Return the requests about resources."""
        lines = (self.directory / "audit.log").read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if "objectRef" in entry]

    def forbidden(self) -> list[str]:
        """Return the requests that no rule allowed."""
        return sorted(
            {
                f"{entry['verb']} {entry['requestURI']}"
                for entry in self.entries()
                if entry.get("annotations", {}).get("authorization.k8s.io/decision") != "allow"
            }
        )

    def used(self) -> set[Right]:
        """Return every right that a request made use of, with the object's name."""
        return {_right(entry["verb"], entry["objectRef"]) for entry in self.entries()}


def _right(verb: str, about: Object) -> Right:
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return Right(verb, about.get("apiGroup", ""), resource, about.get("name", ""))


def rights_in(rules: Iterable[Object]) -> Iterator[Right]:
    """Return every single right that rules give."""
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield Right(verb, group, resource, name)
