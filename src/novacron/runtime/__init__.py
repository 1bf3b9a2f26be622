"""The runtime: everything an operator needs of Kubernetes, and nothing about machines.

Client, cache, queue, controllers, leases, events, webhooks, health and metrics. Objects are
plain dictionaries here; only families know their types.
"""
