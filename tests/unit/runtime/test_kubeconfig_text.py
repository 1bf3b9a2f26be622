"""Kubeconfigs that somebody else wrote, which may hold what they like."""

import pytest
import yaml

from novacron.runtime.connection import NoCluster, from_text

PLAIN = {
    "current-context": "it",
    "contexts": [{"name": "it", "context": {"cluster": "there", "user": "me"}}],
    "clusters": [{"name": "there", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
}


def test_one_with_a_token_can_be_used():
    assert from_text(yaml.safe_dump(PLAIN)).server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "user",
    [
        {"exec": {"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}},
        {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"},
        {"client-certificate": "/etc/x", "client-key": "/etc/y"},
    ],
)
def test_one_that_names_our_files_or_programs_is_refused(user):
    """Whoever can write a Secret could have the operator run a program, or give its token away."""
    text = yaml.safe_dump({**PLAIN, "users": [{"name": "me", "user": user}]})
    with pytest.raises(NoCluster, match="kubectl config view"):
        from_text(text)


@pytest.mark.parametrize("text", ["", "{", "a: [", "- 1", "users: 7"])
def test_what_is_none_is_refused_without_being_quoted(text):
    with pytest.raises(NoCluster) as refused:
        from_text(text)
    assert text == "" or text not in str(refused.value)
