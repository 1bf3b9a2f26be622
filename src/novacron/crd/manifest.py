"""Writes CustomResourceDefinitions from kinds, and YAML that every reader agrees on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from novacron.crd.kind import Column, KindInfo
from novacron.crd.markers import Schema
from novacron.crd.model import CustomResource
from novacron.crd.schema import SchemaError, structural_schema

__all__ = ["ConversionWebhook", "manifest", "to_yaml"]

_ROOT = {
    "apiVersion": {"type": "string", "description": "Group and version of this object's schema."},
    "kind": {"type": "string", "description": "Kind of this object."},
    "metadata": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """Who converts objects between versions; ``client_config`` is Kubernetes' own stanza."""

    client_config: Mapping[str, Any]
    review_versions: tuple[str, ...] = ("v1",)

    def stanza(self) -> Schema:
        """Return the conversion as a CustomResourceDefinition writes it."""
        webhook = {
            "clientConfig": dict(self.client_config),
            "conversionReviewVersions": list(self.review_versions),
        }
        return {"strategy": "Webhook", "webhook": webhook}


def manifest(
    *versions: type[CustomResource], conversion: ConversionWebhook | None = None
) -> Schema:
    """Return the definition of one kind in all its versions, the newest first."""
    infos = [version.__kind__ for version in versions]
    stored = _stored(infos)
    spec: Schema = {
        "group": stored.group,
        "scope": stored.scope,
        "names": _names(stored),
        "versions": [_version(version) for version in versions],
    }
    if conversion:
        spec["conversion"] = conversion.stanza()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": stored.full_name},
        "spec": spec,
    }


def _stored(infos: list[KindInfo]) -> KindInfo:
    """Return the one version that is stored; the names of all must agree with it."""
    stored = [info for info in infos if info.storage]
    if len(stored) != 1:
        raise SchemaError(f"{infos[0].kind}: one version must have storage, not {len(stored)}")
    for info in infos:
        if (info.group, info.scope, _names(info)) != (
            stored[0].group,
            stored[0].scope,
            _names(stored[0]),
        ):
            raise SchemaError(
                f"{info.kind}: {info.version} has other names than the stored version"
            )
    return stored[0]


def _names(info: KindInfo) -> Schema:
    names: Schema = {
        "kind": info.kind,
        "listKind": f"{info.kind}List",
        "plural": info.plural,
        "singular": info.singular,
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    if info.categories:
        names["categories"] = list(info.categories)
    return names


def _version(version: type[CustomResource]) -> Schema:
    info = version.__kind__
    schema = structural_schema(version)
    schema["properties"] = {**schema["properties"], **_ROOT}
    written: Schema = {"name": info.version, "served": info.served, "storage": info.storage}
    written["schema"] = {"openAPIV3Schema": schema}
    if subresources := _subresources(info):
        written["subresources"] = subresources
    if info.columns:
        written["additionalPrinterColumns"] = [_column(column) for column in info.columns]
    return written


def _subresources(info: KindInfo) -> Schema:
    found: Schema = {"status": {}} if info.status else {}
    if info.scale:
        found["scale"] = {
            "specReplicasPath": info.scale.spec_path,
            "statusReplicasPath": info.scale.status_path,
        }
        if info.scale.selector_path:
            found["scale"]["labelSelectorPath"] = info.scale.selector_path
    return found


def _column(column: Column) -> Schema:
    written: Schema = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        written["priority"] = column.priority
    if column.description:
        written["description"] = column.description
    return written


# YAML 1.1 readers (Go's among them) take these words for booleans or null; PyYAML writes some bare.
_AMBIGUOUS = re.compile(r"(?i)^(y|n|yes|no|on|off|true|false|null|~|)$|^[^A-Za-z/]")


class _Quoting(yaml.SafeDumper):
    """Writes strings bare only where no reader can take them for anything else."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002  # PyYAML's own words
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value:
        style: str | None = "|"
    else:
        style = '"' if _AMBIGUOUS.match(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Quoting.add_representer(str, _text)


def to_yaml(*documents: Mapping[str, Any]) -> str:
    """Return the documents as YAML text, in the order their keys were given."""
    return yaml.dump_all(
        documents, Dumper=_Quoting, sort_keys=False, width=100, allow_unicode=True,
        explicit_start=len(documents) > 1,
    )  # fmt: skip
