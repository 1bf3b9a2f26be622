"""What of a Machine's spec is refused by the API itself, and the sentence that says what to do.

Upstream's words and the specification's say the same things; giving both is refused, because
nobody could tell which of them counts.
"""

from novacron.core.quantity import mib
from novacron.crd import Rule
from novacron.families.viti.disk_types import disks_stay_what_they_are, size_of, sized
from novacron.families.viti.templates import BUILT_IN, ROOT

__all__ = ["SPEC_RULES"]

_NAMES = ", ".join(f"'{name}'" for name in BUILT_IN)


def _either(one: str, other: str, *, field: str) -> Rule:
    """Return the rule that two fields, as CEL finds them below spec, are not both there."""
    first, second = (
        f"has(self.{path})" if "." not in path else _deep(path) for path in (one, other)
    )
    return Rule(
        f"!({first} && {second})",
        f"{one} and {other} say the same thing: leave {other} out",
        field_path=f".{field}",
        reason="FieldValueForbidden",
    )


def _deep(path: str) -> str:
    parent, _, _ = path.rpartition(".")
    return f"has(self.{parent}) && has(self.{path})"


def _built_in(spec: str) -> str:
    return f"has({spec}.template) && {spec}.template in [{_NAMES}]"


def _root_of_template(spec: str) -> str:
    """Return how CEL finds the root disk of a built-in template, in bytes."""
    *sizes, last = [(name, mib(each.root_disk) * 2**20) for name, each in BUILT_IN.items()]
    chain = f"{last[1]}.0"
    for name, size in reversed(sizes):
        chain = f"{spec}.template == '{name}' ? {size}.0 : {chain}"
    return f"({chain})"


def _says_root(spec: str) -> str:
    return f"(has({spec}.disks) && {spec}.disks.exists(d, d.name == '{ROOT}' && {sized('d')}))"


def _root_is(spec: str, comparison: str) -> str:
    """Return how CEL compares the root disk that a spec says with something."""
    said = f"d.name != '{ROOT}' || !{sized('d')} || {size_of('d')}"
    return f"{spec}.disks.all(d, {said} {comparison})"


def _root_grows() -> str:
    """Return the rule, whoever says the size before and after: the list or a built-in template."""
    before, after = _root_of_template("oldSelf"), _root_of_template("self")
    told_before, told_after = _says_root("oldSelf"), _says_root("self")
    known_before, known_after = _built_in("oldSelf"), _built_in("self")
    told_then_not = f"({told_before} && !{told_after} && {known_after})"
    not_then_told = f"(!{told_before} && {known_before} && {told_after})"
    never_told = f"(!{told_before} && {known_before} && !{told_after} && {known_after})"
    return (
        f"(!{told_then_not} || {_root_is('oldSelf', f'<= {after}')})"
        f" && (!{not_then_told} || {_root_is('self', f'>= {before}')})"
        f" && (!{never_told} || {after} >= {before})"
    )


SPEC_RULES = (
    _either("template", "machineClass", field="machineClass"),
    _either("resources.cpu", "cpu", field="cpu"),
    _either("resources.memory", "memory", field="memory"),
    _either("networks", "network", field="network"),
    _either("cloudInit.userData", "userData", field="userData"),
    _either("cloudInit.userDataBase64", "userData", field="userData"),
    _either("iso", "os.isoUri", field="os"),
    _either("iso", "os.imageID", field="os"),
    Rule(
        f"!({_built_in('self')}) || !has(self.disks)"
        f" || self.disks.all(d, d.name == '{ROOT}' || has(d.size) || has(d.sizeGB))",
        f"every disk but {ROOT} needs a size: the template has none of its name",
        field_path=".disks",
        reason="FieldValueRequired",
    ),
    *disks_stay_what_they_are("disks"),
    Rule(
        _root_grows(),
        f"the {ROOT} disk would shrink, and disks never do: give disks an entry of the name {ROOT} "
        "with the size it has",
        field_path=".template",
    ),
    Rule(
        "has(self.image) == has(oldSelf.image)"
        " && (!has(self.image) || self.image.source == oldSelf.image.source)",
        "image.source cannot change once the machine is there: delete it and create a new one",
        field_path=".image",
    ),
    Rule(
        "(has(self.provider) && self.provider == 'proxmox')"
        " == (has(oldSelf.provider) && oldSelf.provider == 'proxmox')",
        "provider cannot change: delete the machine and create a new one",
        field_path=".provider",
    ),
)
