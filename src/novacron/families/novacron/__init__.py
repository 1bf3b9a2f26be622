"""The API family of ``novacron.io``: its types, and what they mean to the core.

The types (``kinds``) describe the API and are read to generate its definitions; the running
operator needs only their names and the translation.
"""
