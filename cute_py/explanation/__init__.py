"""explain: what an object of this library is and does, what a name of it stands for, and what an error means."""

from cute_py.explanation.dispatch import Explanation, explain

__all__ = ["Explanation", "explain"]
