"""The command line: reads and writes through the runtime's client, and runs the local cluster.

Modules here import nothing heavy at their top: ``novacron version`` must cost no more than
starting Python. What only ``app`` knows (which kinds there are) comes in as ``Wiring``.
"""
