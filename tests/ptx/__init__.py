"""Whole PTX modules: read, followed, judged."""
