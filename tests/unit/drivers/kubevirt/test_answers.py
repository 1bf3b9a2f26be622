"""What answers of a cluster mean, and whose an object is."""

import pytest

from novacron.core.errors import Busy, DriverError, Rejected, Unreachable
from novacron.drivers.kubevirt.errors import in_our_words
from novacron.drivers.kubevirt.ownership import belongs_to, is_known
from novacron.runtime import errors as api
from unit.drivers.kubevirt.plans import UID

MARK = "novacron.io/machine-uid"


def test_an_object_is_known_by_its_label_its_owner_or_its_guest():
    labelled = {"metadata": {"labels": {MARK: UID}}}
    owned = {"metadata": {"ownerReferences": [{"uid": UID}]}}
    template = {"spec": {"domain": {"firmware": {"uuid": UID}}}}
    told = {"metadata": {}, "spec": {"template": template}}
    assert [belongs_to(each, UID) for each in (labelled, owned, told)] == [True, True, True]
    assert [is_known(each, UID) for each in (labelled, owned, told)] == [True, False, False]


def test_a_label_of_another_machine_counts_more_than_an_owner():
    found = {"metadata": {"labels": {MARK: "another"}, "ownerReferences": [{"uid": UID}]}}
    assert not belongs_to(found, UID)


def test_an_object_without_any_mark_is_somebody_elses():
    assert not belongs_to({"metadata": {}, "data": {}}, UID)


@pytest.mark.parametrize(
    ("error", "kind", "reason", "words"),
    [
        (api.Conflict("newer"), Busy, "Busy", "at the same time"),
        (api.Invalid("no such bus"), Rejected, "KubeVirtRefused", "no such bus"),
        (
            api.Invalid("[data] conflicts with an existing volume of the same name on the vmi"),
            Busy,
            "Busy",
            "not off yet",
        ),
        (api.Forbidden("no"), DriverError, "KubeVirtApiError", "role"),
        (
            api.Forbidden("exceeded quota: compute"),
            DriverError,
            "InsufficientResources",
            "ResourceQuota",
        ),
        (api.NotFound("no such page"), DriverError, "KubeVirtApiError", "installed"),
        (api.Overloaded("down"), DriverError, "KubeVirtApiError", "the cluster failed"),
        (
            api.Overloaded('failed calling webhook "virt-api"'),
            DriverError,
            "KubeVirtApiError",
            "virt-api runs",
        ),
        (api.Unreachable("nobody answers"), Unreachable, "HostUnreachable", "nobody answers"),
    ],
)
def test_every_answer_has_its_remedy(error, kind, reason, words):
    with pytest.raises(kind, match=words) as raised, in_our_words():
        raise error
    assert raised.value.reason == reason


def test_a_machine_that_went_away_is_looked_for_again():
    with pytest.raises(Busy, match="web is not there any more"), in_our_words("web"):
        raise api.NotFound("virtualmachines web not found")
