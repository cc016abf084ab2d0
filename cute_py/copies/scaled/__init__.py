"""Copies that compute: casts, formats and rows by an index, on the host and on a device."""
