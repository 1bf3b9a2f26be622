"""``tiny``: a bootable disk of some megabytes for tests and first steps.

Every file of this package is part of what the image is made of: a change to any of them is
another image in the cache.
"""
