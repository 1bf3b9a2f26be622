"""API families: the types of one API group each, and their translation into core values.

A package is a family and knows no other; the modules beside them are the words that all share.
"""
