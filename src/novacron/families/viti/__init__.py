"""The API family of ``vitistack.io``: Machines that KubeVirt runs.

Modules ending in ``_types`` describe the API and are read to generate its definitions. The others
say what it means, in plain values and without Kubernetes; the running operator loads only those.
"""
