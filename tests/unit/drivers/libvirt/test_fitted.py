"""Where a machine's volumes are plugged in, and what is remembered of those it had."""

from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from novacron.core.volume import Attachment, Volume
from novacron.drivers.libvirt.fitted import LONGEST_SERIAL, Fitted, fitted, seen, serial_of
from novacron.drivers.libvirt.mark import Mark, Told

NAMES = ("a", "b", "c", "d")


def places(names: list[str]) -> dict[str, tuple[Volume, str, str]]:
    """Return where volumes of these names are."""
    return {name: (Volume(name, 64), "pool", f"volume-default.vm.{name}-0.qcow2") for name in names}


@given(st.lists(st.tuples(st.lists(st.sampled_from(NAMES), unique=True), st.booleans())))
def test_whatever_comes_and_goes_no_two_share_a_target(
    history: list[tuple[list[str], bool]],
) -> None:
    """A guest may hold on to any that it should let go of."""
    volumes: tuple[Fitted, ...] = ()
    live: frozenset[tuple[str, str]] = frozenset()
    for names, lets_go in history:
        before = {each.name: each for each in volumes if not each.detached}
        volumes = fitted(places(names), volumes, live)
        has = [each for each in volumes if not each.detached]
        assert [each.name for each in has] == names
        targets = {each.target for each in has}
        assert len(targets) == len(names)
        assert targets.isdisjoint({"vda", "vdb"})
        for each in has:
            assert each.target == before.get(each.name, each).target, "it stays where it is"
        held = frozenset() if lets_go else live
        taken = {each.target: each.name for each in has}
        clashes = [target for target, name in held if taken.get(target, name) != name]
        assert not clashes
        live = held | {(each.target, serial_of(each.name)) for each in has}
    assert len({each.key for each in volumes}) == len(volumes)


def test_a_mark_tells_all_it_was_told() -> None:
    """What is read back is what was written."""
    one = Fitted("a", "vdc", "p", "volume-x.raw", 64, "fast", "ReadWriteMany", made=True, cold=True)
    one = replace(one, untold=True)
    told = (Told("52:54:00:00:00:01", "former", ("10.0.0.1/24",), "word"),)
    image = "s3://bucket/a'b\"<&>\n\t"
    volumes = (one, Fitted("b", "vdd", "p", "f", 1))
    mark = Mark("uid", "ns", "vm", 10, "r", image, told, "shape", volumes, "cpu", untold=True)
    assert Mark.found(ET.fromstring(f"<metadata>{mark.text}</metadata>")) == mark


def test_a_long_name_has_a_serial_number_of_its_own() -> None:
    """A guest sees no more than its first letters."""
    names = ["data", "a-volume-with-a-long-name-1", "a-volume-with-a-long-name-2"]
    serials = [serial_of(name) for name in names]
    assert serials[0] == "data"
    assert len(set(serials)) == 3
    assert max(map(len, serials)) <= LONGEST_SERIAL


def test_a_volume_that_was_there_and_is_not_is_pending_for_ever() -> None:
    """It is for whoever makes volumes to refuse; here it is only told that it is missing."""
    one = Fitted("a", "vdc", "p", "volume-default.vm.a-0.qcow2", 64, made=True)
    assert seen(one, frozenset(), None).attachment is Attachment.PENDING
    assert seen(one, frozenset({one.key}), None).attachment is Attachment.ATTACHED
    assert seen(one, frozenset({one.key}), frozenset()).attachment is Attachment.PENDING
