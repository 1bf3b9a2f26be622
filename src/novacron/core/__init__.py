"""The core: what machines and hosts are and how one is brought to its declared state.

Pure values and protocols. Nothing here knows Kubernetes, an API group or a hypervisor.
"""
