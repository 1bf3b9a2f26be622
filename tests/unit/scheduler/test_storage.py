"""Storage classes have an end, and a place that several hosts see has it once."""

from novacron.core.host import Host, StorageRoom
from novacron.core.machine import Machine, Resources
from novacron.core.resources import Share
from novacron.scheduler import Placed, choose, fits, one_line, refusals
from unit.scheduler.hosts import SMALL, host, machine, table

FAST = StorageRoom("fast", 600)


def sized(*shares: tuple[str, str, int]) -> Resources:
    """A small machine with volumes of classes, each by class, id and size."""
    return SMALL + Resources(shares=tuple(sorted(Share(*share) for share in shares)))


def wanting(*shares: tuple[str, str, int], **wishes: object) -> Machine:
    return machine(sized(*shares), **wishes)


def seeing(name: str, *rooms: StorageRoom) -> Host:
    return host(name, storage=rooms)


def test_a_second_volume_does_not_go_where_the_first_took_the_room() -> None:
    """Each of them alone would fit."""
    hosts = table(seeing("a", FAST))
    hosts.take("one", "a", sized(("fast", "one.data", 500)))
    decision = choose(hosts, wanting(("fast", "web.data", 500)))
    said = "lacks storage of class fast (500 MiB asked, 100 free)"
    assert one_line(decision) == f"0/1 hosts fit: 1 {said}"
    assert [each.filter for each in refusals(decision)] == ["Storage"]
    hosts.release("one")
    assert isinstance(choose(hosts, wanting(("fast", "web.data", 500))), Placed)


def test_of_a_class_that_cannot_be_used_it_is_told_why() -> None:
    """Nobody would look for a pool that is not started where only room is said to be missing."""
    hosts = table(seeing("a", StorageRoom("fast", 0, trouble="storage pool ssd is not started")))
    said = "lacks storage of class fast (500 MiB asked, 0 free): storage pool ssd is not started"
    assert one_line(choose(hosts, wanting(("fast", "web.data", 500)))) == f"0/1 hosts fit: 1 {said}"


def test_of_many_hosts_the_most_that_one_has_free_is_told() -> None:
    """A thousand hosts must not make a message of a thousand figures."""
    hosts = table(seeing("a", FAST), seeing("b", StorageRoom("fast", 100)))
    said = one_line(choose(hosts, wanting(("fast", "web.data", 601))))
    assert said == "0/2 hosts fit: 2 lack storage of class fast (601 MiB asked, 600 free at most)"


def test_a_class_whose_size_nobody_tells_has_no_end() -> None:
    """A cluster behind KubeVirt says itself when it has no more."""
    hosts = table(host("a"), seeing("b", StorageRoom("fast", 10)))
    decision = choose(hosts, wanting(("fast", "web.data", 10**9)))
    assert isinstance(decision, Placed)
    assert decision.host == "a"


def test_several_volumes_of_one_class_need_room_together() -> None:
    """Nor is one refused for another one's size."""
    hosts = table(seeing("a", FAST, StorageRoom("slow", 10)))
    two = wanting(("fast", "web.data", 400), ("fast", "web.logs", 300), ("slow", "web.old", 1))
    assert "(700 MiB asked, 600 free)" in one_line(choose(hosts, two))


def test_two_classes_that_are_one_place_have_its_room_once() -> None:
    """However they are called."""
    hosts = table(seeing("a", StorageRoom("fast", 600, "x"), StorageRoom("slow", 600, "x")))
    both = wanting(("fast", "web.data", 400), ("slow", "web.logs", 300))
    assert "at once, which are one place there" in one_line(choose(hosts, both))
    assert isinstance(choose(hosts, wanting(("slow", "web.logs", 600))), Placed)


def test_hosts_that_see_one_place_have_its_room_once() -> None:
    """What a machine of one of them takes is gone for all."""
    shared = StorageRoom("fast", 600, "nfs")
    hosts = table(seeing("a", shared), seeing("b", shared), seeing("c", FAST))
    hosts.take("one", "a", sized(("fast", "one.data", 500)))
    decision = choose(hosts, wanting(("fast", "web.data", 500)))
    assert isinstance(decision, Placed)
    assert decision.host == "c"
    assert [each.host for each in refusals(decision)] == ["a", "b"]


def test_a_machine_that_moves_within_one_place_holds_its_room_once() -> None:
    """Its volume does not go anywhere."""
    shared = StorageRoom("fast", 600, "nfs")
    hosts = table(seeing("a", shared), seeing("b", shared))
    moving = sized(("fast", "web.data", 500))
    hosts.take("uid-1", "a", moving)
    decision = choose(hosts, machine(moving, leaving="a"))
    assert isinstance(decision, Placed)
    hosts.take("uid-1/move", "b", moving)
    small, large = (wanting(("fast", "db.data", size), uid="uid-2") for size in (100, 101))
    assert isinstance(choose(hosts, small), Placed)
    assert not isinstance(choose(hosts, large), Placed)
    hosts.release("uid-1")
    assert not isinstance(choose(hosts, large), Placed)


def test_a_machine_that_moves_between_places_holds_room_in_both() -> None:
    """Until it has arrived its volume is in the one, and is written into the other."""
    hosts = table(seeing("a", FAST), seeing("b", FAST))
    moving = sized(("fast", "web.data", 500))
    hosts.take("uid-1", "a", moving)
    hosts.take("uid-1/move", "b", moving)
    assert not isinstance(choose(hosts, wanting(("fast", "db.data", 200), uid="uid-2")), Placed)
    hosts.release("uid-1")
    assert isinstance(choose(hosts, wanting(("fast", "db.data", 200), uid="uid-2")), Placed)


def test_a_volume_that_several_machines_have_takes_its_room_once() -> None:
    """The second of them names it by its id."""
    shared = StorageRoom("fast", 600, "nfs")
    hosts = table(seeing("a", shared), seeing("b", shared))
    hosts.take("one", "a", sized(("fast", "one.data", 500)))
    assert isinstance(choose(hosts, wanting(("fast", "one.data", 500))), Placed)
    hosts.take("uid-1", "b", sized(("fast", "one.data", 500)))
    hosts.release("one")
    assert not isinstance(choose(hosts, wanting(("fast", "db.data", 101), uid="u")), Placed)
    assert isinstance(choose(hosts, wanting(("fast", "db.data", 100), uid="u")), Placed)


def test_first_disks_in_a_place_that_hosts_share_have_its_room_once() -> None:
    """Each of the two hosts says that it has all of it."""
    own = StorageRoom("", 100_000, "nfs")
    hosts = table(seeing("a", own), seeing("b", own))
    hosts.take("one", "a", Resources(1, 1, 60_000))
    decision = choose(hosts, machine(Resources(1, 1, 60_000)))
    said = "disk that hosts share (60000 MiB asked, 40000 free"
    assert said in one_line(decision)
    moving = choose(hosts, machine(Resources(1, 1, 60_000), uid="one", leaving="a"))
    assert isinstance(moving, Placed)


def test_growth_needs_room_of_the_class_too() -> None:
    """Only what grows does, also where there is less than nothing."""
    hosts = table(seeing("a", FAST))
    hosts.take("uid-1", "a", sized(("fast", "web.data", 500)))
    assert fits(hosts, "uid-1", "a", sized(("fast", "web.data", 600))) is None
    said = fits(hosts, "uid-1", "a", sized(("fast", "web.data", 500), ("fast", "web.logs", 101)))
    assert said == "host a lacks storage of class fast (101 MiB more asked, 100 free)"
    hosts.upsert(seeing("a", StorageRoom("fast", 400)))
    assert fits(hosts, "uid-1", "a", sized(("fast", "web.data", 500))) is None


def test_what_is_held_counts_whenever_the_class_is_told_of() -> None:
    """Machines are often heard of before their hosts, and a place gets its mark later."""
    hosts = table()
    hosts.take("one", "a", sized(("fast", "one.data", 500)))
    hosts.upsert(host("a"))
    for room in (FAST, StorageRoom("fast", 600, "nfs"), FAST):
        hosts.upsert(seeing("a", room))
        assert not isinstance(choose(hosts, wanting(("fast", "web.data", 101))), Placed)
        assert isinstance(choose(hosts, wanting(("fast", "web.data", 100))), Placed)


def test_a_forgotten_host_leaves_its_volumes_in_the_place_that_others_see() -> None:
    """Nobody deleted them."""
    shared = StorageRoom("fast", 600, "nfs")
    hosts = table(seeing("a", shared), seeing("b", shared))
    hosts.take("one", "a", sized(("fast", "one.data", 500)))
    hosts.remove("a")
    assert not isinstance(choose(hosts, wanting(("fast", "web.data", 101))), Placed)
    hosts.release("one")
    assert isinstance(choose(hosts, wanting(("fast", "web.data", 600))), Placed)


def test_the_least_that_any_host_tells_of_a_place_counts() -> None:
    """Kept volumes are told of by one host only."""
    first, second = (StorageRoom("fast", room, "x") for room in (600, 9))
    hosts = table(seeing("a", first), seeing("b", second))
    assert not isinstance(choose(hosts, wanting(("fast", "web.data", 10))), Placed)


def test_many_places_need_no_more_than_a_number_each() -> None:
    """And numbers come back when a host tells of none any more."""
    hosts = table(*(seeing(f"host-{n}", StorageRoom("fast", n)) for n in range(100)))
    decision = choose(hosts, wanting(("fast", "web.data", 99)))
    assert isinstance(decision, Placed)
    assert decision.host == "host-99"
    for n in range(100):
        hosts.upsert(host(f"host-{n}"))
    hosts.upsert(seeing("host-1", StorageRoom("fast", 5)))
    asked = wanting(("fast", "web.data", 6), only_host="host-1")
    assert not isinstance(choose(hosts, asked), Placed)
