"""A node for the local cluster: runs pods of our own image as processes of this machine.

A development tool, and it says so: there is no container engine and no image. A pod sees the
machine's own programs through a private root, has a network namespace and an address of its
own, and every container is a process with a keeper that outlives the agent. It knows
Kubernetes' pods and nothing about virtual machines.
"""
