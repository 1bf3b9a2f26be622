"""The real cloud-init reads what we write for guests: Debian's, not installed but unpacked."""

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from novacron.core.guest_network import network_configuration
from novacron.core.machine import Nic
from novacron.core.multi_part import joined
from novacron.guests.tiny.debs import Debs, unpack
from novacron.workplace.home import Home
from novacron.workplace.lock import holding
from novacron.workplace.progress import Silent

# With all that it imports; whatever else it depends on is for guests that boot.
PACKAGES = (
    "cloud-init",
    *(f"python3-{name}" for name in ("yaml", "jinja2", "markupsafe", "configobj", "six", "attr")),
    *(f"python3-{name}" for name in ("oauthlib", "requests", "urllib3", "chardet", "idna")),
    *(f"python3-{name}" for name in ("certifi", "jsonpatch", "json-pointer", "jsonschema")),
    *(f"python3-{name}" for name in ("pyrsistent", "netifaces", "serial", "charset-normalizer")),
)
EXAMPLE = Path(__file__).parents[2] / "examples/24-cloud-init.yaml"
MACS = ("52:54:00:12:34:56", "52:54:00:12:34:57")
CONVERT = """
import sys
from cloudinit.cmd.main import main
sys.exit(main(["cloud-init", "devel", "net-convert", *sys.argv[1:]]))
"""
SCHEMA = """
import sys
from cloudinit.cmd.main import main
sys.exit(main(["cloud-init", "schema", "--config-file", *sys.argv[1:]]))
"""
USERS = """
import json, sys, yaml
from cloudinit.distros import fetch, ug_util
distribution = fetch("debian")("debian", {"default_user": {"name": "debian"}}, None)
users, _ = ug_util.normalize_users_groups(yaml.safe_load(sys.stdin), distribution)
print(json.dumps(users))
"""
TAKE_APART = """
import json, sys
from cloudinit.helpers import Paths
from cloudinit.user_data import UserDataProcessor
message = UserDataProcessor(Paths({})).process(sys.stdin.buffer.read())
parts = [part for part in message.walk() if not part.is_multipart()]
print(json.dumps([[p.get_content_type(), p.get_payload(decode=True).decode()] for p in parts]))
"""


@cache
def unpacked() -> Path:
    """Return where its modules are, fetched once for the machine."""
    place = Home.default().cache / "cloud-init"
    place.mkdir(parents=True, exist_ok=True)
    with holding(place / "lock", "tests", on_wait=lambda: None):
        if not (place / "complete").exists():
            debs = Debs(place / "debs", place / "scratch", Silent())
            unpack(debs.closure(PACKAGES), place / "root")
            (place / "complete").touch()
    return place / "root/usr/lib/python3/dist-packages"


def cloud_init(program: str, *arguments: str, given: bytes = b"") -> str:
    """Run a program with its modules."""
    environment = {**os.environ, "PYTHONPATH": str(unpacked())}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def converted(directory: Path, kind: str, distribution: str, *nics: Nic) -> dict[str, str]:
    """Return the files that a guest of some distribution gets from interfaces, by their names."""
    written, made = directory / "network-config", directory / "made"
    told = network_configuration(zip(MACS, nics, strict=False))
    written.write_text(json.dumps(told))
    wishes = ("--network-data", str(written), "--kind", "yaml", "--output-kind", kind)
    cloud_init(CONVERT, *wishes, "--distro", distribution, "--directory", str(made))
    return {file.name: file.read_text() for file in made.rglob("*") if file.is_file()}


STATIC = Nic(
    "management",
    "10.0.1.10/24",
    "10.0.1.1",
    "fd00::7/64",
    "fd00::1",
    dns_servers=("9.9.9.9",),
    dns_search=("example.test",),
)
# What each of them must say of the second interface, as somebody would type it there.
EXPECTED = {
    ("eni", "debian"): (
        "50-cloud-init",
        ["address 10.0.1.10/24", "route add default gw 10.0.1.1", "address fd00::7/64"],
        ["gateway fd00::1", "dns-nameservers 9.9.9.9"],
    ),
    ("networkd", "debian"): (
        "10-cloud-init-net1.network",
        ["MACAddress=52:54:00:12:34:57", "Address=10.0.1.10/24", "Gateway=10.0.1.1"],
        ["Address=fd00::7/64", "Gateway=fd00::1", "DNS=9.9.9.9", "Domains=example.test"],
    ),
    ("sysconfig", "rhel"): (
        "ifcfg-net1",
        ["HWADDR=52:54:00:12:34:57", "IPADDR=10.0.1.10", "GATEWAY=10.0.1.1"],
        ["IPV6ADDR=fd00::7/64", "IPV6_DEFAULTGW=fd00::1", "DNS1=9.9.9.9"],
    ),
    ("network-manager", "rhel"): (
        "cloud-init-net1.nmconnection",
        ["mac-address=52:54:00:12:34:57", "address1=10.0.1.10/24", "route1=0.0.0.0/0,10.0.1.1"],
        ["address1=fd00::7/64", "gateway=fd00::1", "dns=9.9.9.9;"],
    ),
}


@pytest.mark.parametrize("system", EXPECTED, ids="-".join)
def test_addresses_gateways_and_name_servers_reach_every_system(
    tmp_path: Path, system: tuple[str, str]
) -> None:
    """Also where an old cloud-init makes another network of the whole of IPv6."""
    file, first, more = EXPECTED[system]
    made = converted(tmp_path, *system, Nic("default"), STATIC)
    for line in (*first, *more):
        assert re.search(rf"(^|\s){re.escape(line)}($|\s)", made[file]), f"{line} in {made[file]}"
    assert "::/64" not in made[file].replace("fd00::7/64", "")


# How each of them is told to ask for an IPv6 address.
ASKS = {
    ("eni", "debian"): ("50-cloud-init", "inet6 dhcp"),
    ("networkd", "debian"): ("10-cloud-init-net0.network", "DHCP=yes"),
    ("sysconfig", "rhel"): ("ifcfg-net0", "DHCPV6C=yes"),
    ("network-manager", "rhel"): ("cloud-init-net0.nmconnection", "[ipv6]\nmethod=auto"),
    ("netplan", "ubuntu"): ("50-cloud-init.yaml", "dhcp6: true"),
}


@pytest.mark.parametrize("system", ASKS, ids="-".join)
def test_only_who_is_to_ask_for_an_ipv6_address_does(
    tmp_path: Path, system: tuple[str, str]
) -> None:
    """What the network announces is taken without asking."""
    file, line = ASKS[system]
    (asking := tmp_path / "asking").mkdir()
    (silent := tmp_path / "silent").mkdir()
    assert line in converted(asking, *system, Nic("default", dhcp6=True))[file]
    assert line not in converted(silent, *system, Nic("default"))[file]


def test_netplan_is_told_what_we_say(tmp_path: Path) -> None:
    """Word for word, so that of two gateways the first interface's is taken."""
    other = Nic("other", "10.0.2.10/24", "10.0.2.1", "fd01::7/64", "fd01::1")
    made = converted(tmp_path, "netplan", "ubuntu", STATIC, other)["50-cloud-init.yaml"]
    assert "gateway6: fd00::1" in made
    metrics = {way: int(metric) for metric, way in re.findall(r"metric: (\d+)\s+to: (\S+)", made)}
    via = dict(re.findall(r"to: (\S+)\s+via: (\S+)", made))
    assert via["::/0"] == "fd01::1"
    assert metrics["::/0"] > 1024, "the first one's has what Linux gives it"


def test_several_instructions_are_taken_apart_as_they_were_put_together() -> None:
    """A script and two configurations, however long."""
    long = "#cloud-config\nwrite_files:\n" + "".join(
        f"- {{path: /srv/{number}, content: {'x' * 200}}}\n" for number in range(200)
    )
    parts = ["#!/bin/sh\necho MIME-Version: 1.0\n", long, "#cloud-config\nhostname: web\n"]
    message = joined(tuple(part.encode() for part in parts))
    found = json.loads(cloud_init(TAKE_APART, given=message))
    assert [kind for kind, _ in found] == ["text/x-shellscript", *["text/cloud-config"] * 2]
    assert [text for _, text in found] == parts


def test_the_example_is_understood_with_the_part_that_our_own_guest_ignores(tmp_path: Path) -> None:
    """Of its users one is the image's own, and the other may log in with the key."""
    manifest = yaml.safe_load(EXAMPLE.read_text())
    text = manifest["spec"]["template"]["spec"]["userData"]
    (written := tmp_path / "user-data").write_text(text)
    assert "Valid cloud-config" in cloud_init(SCHEMA, str(written))
    users = json.loads(cloud_init(USERS, given=text.encode()))
    assert [name for name, user in users.items() if user["default"]] == ["debian"]
    assert users["ada"]["ssh_authorized_keys"] == yaml.safe_load(text)["ssh_authorized_keys"]
