"""What the node runs and what it refuses, as whom, from which image, with which addresses."""

import ipaddress

import pytest

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.node.environment import Unmet
from novacron.localcluster.node.image import IMAGE_USER, OwnImage, repository_of
from novacron.localcluster.node.security import CAPABILITIES, user_of
from novacron.localcluster.node.subnet import Subnet, choose, recorded
from novacron.localcluster.node.support import refusals
from novacron.localcluster.node.verdict import Verdict

OURS = OwnImage("novacron/novacron")
ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
)


def pod(spec=None, **container):
    """Return a pod with one container of our image."""
    described = {"name": "c", "image": "novacron/novacron:1", **container}
    return {"metadata": {"name": "p"}, "spec": {"containers": [described], **(spec or {})}}


@pytest.mark.parametrize(
    ("reference", "repository"),
    [
        ("novacron/novacron", "novacron/novacron"),
        ("novacron/novacron:v1.2", "novacron/novacron"),
        ("novacron/novacron:v1@sha256:0a", "novacron/novacron"),
        ("registry.example:5000/novacron/novacron:v1", "novacron/novacron"),
        ("localhost/novacron/novacron", "novacron/novacron"),
        ("nginx", "nginx"),
        ("someone/novacron/novacron", "someone/novacron/novacron"),
    ],
)
def test_an_image_is_known_by_its_repository(reference, repository):
    """Whatever its registry and its tag."""
    assert repository_of(reference) == repository


def test_another_image_is_refused_with_what_this_node_is():
    """All containers of the pod wait then; the message names the image that does not run."""
    mixed = pod({"initContainers": [{"name": "i", "image": "busybox"}]})
    found = refusals(mixed, OURS)
    assert {refusal.reason for refusal in found.values()} == {"NotOurImage"}
    assert found.keys() == {"c", "i"}
    assert "cannot run busybox" in found["c"].message
    assert "development node" in found["c"].message


@pytest.mark.parametrize(
    ("described", "named"),
    [
        (pod({"hostPID": True}), "hostPID"),
        (pod({"volumes": [{"name": "v", "nfs": {}}]}), "nfs volumes"),
        (pod(securityContext={"privileged": True}), "privileged"),
        (pod(lifecycle={"preStop": {}}), "lifecycle"),
        (pod(livenessProbe={"grpc": {"port": 1}}), "livenessProbe"),
        (
            pod({"initContainers": [{"name": "i", "image": "novacron/novacron",
                                     "restartPolicy": "Always"}]}),
            "restartPolicy of init container i",
        ),
    ],
)  # fmt: skip
def test_what_the_node_does_not_know_is_refused_by_name(described, named):
    """Rather than left out: nobody looks for what was silently ignored."""
    assert named in refusals(described, OURS)["c"].message


def test_an_ordinary_pod_is_not_refused():
    """Probes, volumes and contexts of a usual chart."""
    usual = pod(
        {
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {}}],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {}},
        },
        livenessProbe={"httpGet": {"port": 1}},
        securityContext={"readOnlyRootFilesystem": True},
    )
    assert refusals(usual, OURS) == {}


def test_the_image_has_a_user_of_its_own():
    """Not root, so `runAsNonRoot` alone is met."""
    user = user_of(pod({"securityContext": {"runAsNonRoot": True}}), {})
    assert (user.uid, user.gid, user.new_privileges) == (IMAGE_USER, IMAGE_USER, True)


def test_the_container_wins_over_the_pod():
    """And the groups are the pod's."""
    whole = pod({"securityContext": {"runAsUser": 1, "fsGroup": 7, "supplementalGroups": [5]}})
    user = user_of(whole, {"securityContext": {"runAsUser": 2, "allowPrivilegeEscalation": False}})
    assert (user.uid, user.gid, user.groups, user.new_privileges) == (2, 0, [5, 7], False)


def test_root_is_refused_where_it_is_forbidden():
    """A contradiction that a kubelet refuses too."""
    with pytest.raises(Unmet, match="runAsNonRoot"):
        user_of(pod({"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}), {})


def test_capabilities_are_those_of_container_runtimes_less_and_more():
    """Never the power to mount or to change the machine, unless somebody asks for it."""

    def names(**wish):
        user = user_of(pod(), {"securityContext": {"capabilities": wish}})
        return {CAPABILITIES[number] for number in user.capabilities}

    assert "SYS_ADMIN" not in names()
    assert "MKNOD" not in names()
    assert "CHOWN" in names()
    assert names(drop=["ALL"], add=["NET_BIND_SERVICE"]) == {"NET_BIND_SERVICE"}
    assert "CHOWN" not in names(drop=["CHOWN"])


def test_a_network_is_chosen_that_nobody_uses_and_kept(tmp_path):
    """Two clusters on one machine, and the machine's own networks, must not meet."""
    first = choose(tmp_path, ROUTES)
    assert choose(tmp_path, ROUTES) == first == recorded(tmp_path)
    octets = first.network.network_address.packed
    taken = ROUTES + f"tun0\t{octets[::-1].hex().upper()}\t0\t1\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    moved = choose(tmp_path, taken)
    assert not moved.network.overlaps(first.network)
    # Our own bridge is no stranger.
    own = taken.replace("tun0", moved.bridge)
    assert choose(tmp_path, own) == moved


def test_networks_of_two_clusters_differ(tmp_path):
    """They are named and numbered by the place where they live."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = choose(tmp_path / "a", ROUTES), choose(tmp_path / "b", ROUTES)
    assert first.bridge != second.bridge
    assert len(first.bridge) <= 15
    assert not first.network.overlaps(second.network)


def test_addresses_are_given_once_and_run_out_with_a_sentence():
    """The machine's own is never given away."""
    subnet = Subnet(ipaddress.IPv4Network("10.0.0.0/29"), "b")
    taken: list[str] = []
    for _ in range(5):
        taken.append(str(subnet.free(taken).ip))
    assert sorted(set(taken)) == sorted(taken)
    assert "10.0.0.1" not in taken
    with pytest.raises(LocalClusterError, match="delete some pods"):
        subnet.free(taken)


def test_a_probe_needs_a_row_of_equal_answers():
    """One bad answer among good ones changes nothing."""
    verdict = Verdict.of({"successThreshold": 2, "failureThreshold": 3}, holds=False)
    answers = [True, True, False, False, True, False, False, False]
    held = []
    for good in answers:
        verdict.take(good=good)
        held.append(verdict.holds)
    assert held == [False, True, True, True, True, True, True, False]
