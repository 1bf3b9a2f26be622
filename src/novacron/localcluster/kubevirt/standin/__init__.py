"""A stand-in for what runs on KubeVirt's nodes: **no guest runs, no byte is stored**.

It plays kubelets, virt-handlers and a provisioner of volumes: it says of nodes, pods, instances,
migrations and claims what those would say, as soon as Kubernetes and KubeVirt ask for it. Two
annotations, ``hold`` and ``fail`` under ``stand-in.novacron.io/``, have it say that something
does not happen or goes wrong (see ``wishes``).
"""
