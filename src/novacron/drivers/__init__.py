"""Drivers: each talks to one kind of hypervisor in core values and knows no API object."""
