"""Decide and register: one ComponentResource a concern, pure builders for the objects."""
