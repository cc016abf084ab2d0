"""explain: texts about the objects and names of this library, and about the errors of this and other programs."""

from cute_py.explanation.dispatch import Explanation, explain

__all__ = ["Explanation", "explain"]
