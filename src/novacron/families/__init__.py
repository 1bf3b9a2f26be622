"""API families: the types of one API group each, and their translation into core values."""
