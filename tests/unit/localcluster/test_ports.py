"""Ports are remembered while they are free and replaced when they are not."""

import socket

import pytest

from novacron.localcluster.ports import LOOPBACK, Ports, free_port, is_free


@pytest.fixture
def listener():
    """Listen on a given loopback port until the test ends."""
    opened = []

    def listen(port: int) -> None:
        opened.append(socket.create_server((LOOPBACK, port)))

    yield listen
    for each in opened:
        each.close()


def test_a_free_port_is_claimed_again(tmp_path):
    """A restarted cluster keeps its address, so that kubeconfigs stay valid."""
    ports = Ports(tmp_path / "ports.json")
    assert ports.claim("api") == ports.claim("api") == ports.read()["api"]


def test_a_taken_port_is_replaced(tmp_path, listener):
    """Whoever took it while the cluster was down keeps it."""
    ports = Ports(tmp_path / "ports.json")
    first = ports.claim("api")
    listener(first)
    assert not is_free(first)
    assert ports.claim("api") != first


def test_no_two_listeners_get_the_same_port(tmp_path):
    """They are claimed before any of them listens."""
    ports = Ports(tmp_path / "ports.json")
    claimed = [ports.claim(f"listener-{number}") for number in range(50)]
    assert len(set(claimed)) == len(claimed)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"api": "x"}', "null"])
def test_a_torn_file_remembers_nothing(tmp_path, content):
    """A damaged file costs the old ports and nothing else."""
    ports = Ports(tmp_path / "ports.json")
    ports.path.write_text(content)
    assert ports.read() == {}
    assert ports.claim("api") == ports.read()["api"]


def test_ports_lie_below_those_of_outgoing_connections():
    """Otherwise any connection of any program could sit on a remembered port."""
    assert all(1024 < free_port() < 32768 for _ in range(20))
