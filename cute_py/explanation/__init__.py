"""`explain`: describe the objects and names of this library, and the errors of this library and of other programs."""

from cute_py.explanation.dispatch import Explanation, explain

__all__ = ["Explanation", "explain"]
