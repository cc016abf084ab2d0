"""`from tests.calls.interactive import *`: every name that the text of a call uses."""

from tests.calls.namespace import names as _names

globals().update(_names())
__all__ = list(_names())
