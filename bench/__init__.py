"""Measures our operator beside its peers on a real API server, and holds it to its bars.

Everything here starts its own throw-away control plane; nothing touches a user's cluster.
"""
