"""Controllers: what happens next to a machine or a host, and the one place it is written down.

Steps and decisions are over core values; ``ports`` says what a family must tell of its objects.
"""
