"""NovaCron: one Kubernetes operator that runs virtual machines anywhere."""

__version__ = "0.1.0"
