"""Copies that change values or select rows: casts, conversions between formats, gathers and scatters of rows, on the
host and on a device."""
