"""A real Kubernetes control plane as plain processes on this machine.

Builds the programs, makes their certificates, starts, watches over and stops them. It knows
Kubernetes' own programs and nothing about virtual machines or about our operator.
"""
