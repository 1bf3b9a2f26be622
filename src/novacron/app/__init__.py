"""Wiring: settings, the registry of families and drivers, and the operator's main program.

The one place that knows everything.
"""
