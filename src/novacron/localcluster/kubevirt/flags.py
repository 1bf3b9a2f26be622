"""What Kubernetes has to be told so that this release of KubeVirt works on it."""

from collections.abc import Mapping, Sequence

__all__ = ["FLAGS"]

# virt-controller's patches of a pod name all its conditions as it knows them, and it does not know
# the generation that the scheduler of Kubernetes 1.34 notes in them: a pod that finds no node would
# leave its instance Pending without a reason, for ever.
FLAGS: Mapping[str, Sequence[str]] = {
    "kube-apiserver": ("--feature-gates=PodObservedGenerationTracking=false",)
}
