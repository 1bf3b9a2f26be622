"""What virt-api passes on to the node of a guest: pauses, consoles, screens."""

import os
import pty
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Event
from typing import Any

import pytest

from api import Api
from kubevirt_bed import KubeVirtBed


@pytest.mark.full
def test_a_guest_is_paused_and_goes_on(kubevirt: KubeVirtBed) -> None:
    kubevirt.started("sleeper")
    kubevirt.ask_instance("sleeper", "pause")
    kubevirt.wait("it is not paused", lambda: kubevirt.printable("sleeper") == "Paused")
    kubevirt.ask_instance("sleeper", "unpause")
    kubevirt.wait("it does not go on", lambda: kubevirt.printable("sleeper") == "Running")


@pytest.mark.full
def test_a_guest_is_paused_while_others_write_about_it(kubevirt: KubeVirtBed) -> None:
    """As KubeVirt's own controllers do all the time."""
    kubevirt.started("watched")
    other, enough = replace(kubevirt, api=Api(kubevirt.kubeconfig)), Event()

    def write() -> None:
        for number in count():
            if enough.is_set():
                return
            other.annotate("virtualmachineinstances", "watched", "note", str(number))

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write)
        try:
            for _ in range(5):
                kubevirt.ask_instance("watched", "pause")
                kubevirt.ask_instance("watched", "unpause")
        finally:
            enough.set()
        writing.result()
    other.api.close()


@pytest.mark.full
def test_a_console_gives_back_what_is_typed(kubevirt: KubeVirtBed) -> None:
    """virtctl, the API server and virt-api are all between the two ends."""
    kubevirt.started("talker")
    ours, theirs = pty.openpty()
    command = ["console", "talker", "-n", kubevirt.namespace, f"--kubeconfig={kubevirt.kubeconfig}"]
    child = subprocess.Popen(
        [kubevirt.kubevirt.binaries / "virtctl", *command],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    heard = bytearray()

    def hears(what: bytes) -> Any:
        heard.extend(os.read(ours, 1024))
        return what in heard

    try:
        kubevirt.wait("it does not greet", lambda: hears(b"no guest runs here"))
        os.write(ours, b"xyzzy")
        kubevirt.wait("it does not give it back", lambda: hears(b"xyzzy"))
    finally:
        child.kill()
        child.wait()
        os.close(ours)
