"""explain: what an object of this library is and does, what a name of it stands for, and what an error means."""

from cute_py.explanation.dispatch import explain
from cute_py.explanation.html_form import Explanation

__all__ = ["Explanation", "explain"]
