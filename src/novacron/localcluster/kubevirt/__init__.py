"""A real KubeVirt control plane beside a local Kubernetes one, with a stand-in for its nodes.

virt-api and virt-controller are KubeVirt's own programs, with its own definitions, rights and
webhooks. What would run guests (virt-handler and virt-launcher on nodes) is played by an agent
of ours that says what they would say: **guests do not run**. Nothing here knows our machines.
"""
