"""Register with IPython the objects that a Jupyter notebook displays as pictures.

`import cute_py` in a running IPython registers them. If cute_py was imported before IPython started, `%load_ext
cute_py` registers them; `%unload_ext cute_py` undoes the registration. The classes themselves do not depend on
notebooks: IPython finds the display function by the name of the class, and the first picture imports the drawing
package.
"""

from __future__ import annotations

import sys
from typing import Any, Final

FORMAT: Final = "text/html"

SHOWN: Final[tuple[tuple[str, str], ...]] = (
    ("cute_py.layout.layout", "Layout"),
    ("cute_py.layout.composed", "ComposedLayout"),
    ("cute_py.layout.swizzle", "Swizzle"),
    ("cute_py.tensor.tensor", "Tensor"),
    ("cute_py.tma.atom.atom", "TmaAtom"),
    ("cute_py.tma.atom.im2col", "Im2colAtom"),
    ("cute_py.tma.descriptor.request", "TensorMapTiled"),
    ("cute_py.tma.descriptor.request", "TensorMapIm2col"),
    ("cute_py.tma.descriptor.request", "TensorMapIm2colWide"),
    ("cute_py.tma.simulate.pipeline", "Timeline"),
    ("cute_py.tmem.copy_request", "CopyAsync"),
    ("cute_py.tmem.demonstration", "Demonstration"),
    ("cute_py.draw.picture", "Picture"),
    ("cute_py.errors", "CuteError"),
)
"""(module, class) of the objects that are shown, which include derived classes."""


def html(thing: Any) -> str:
    """The HTML that a notebook shows for an object: its printed form, its picture and its explanation.

    Raises:
        ModuleNotFoundError: the package was installed without `draw`.
    """
    from cute_py.draw.notebook import object_html as drawn
    from cute_py.explanation import explain

    return drawn(thing, explain)


def register(shell: Any) -> None:
    """Register the HTML display of the classes in `SHOWN` with IPython.

    Args:
        shell: the running InteractiveShell, as `get_ipython()` returns it.
    """
    formatter = shell.display_formatter.formatters[FORMAT]
    for module, name in SHOWN:
        formatter.for_type_by_name(module, name, html)


def unregister(shell: Any) -> None:
    """Undo `register`."""
    formatter = shell.display_formatter.formatters[FORMAT]
    for module, name in SHOWN:
        while formatter.pop(f"{module}.{name}", None) is not None:  # stored by name, and by class once seen
            pass


def register_where_running() -> bool:
    """Register the displays if this process runs IPython, without importing IPython. Return whether it does."""
    running = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = running() if callable(running) else None
    if FORMAT not in getattr(getattr(shell, "display_formatter", None), "formatters", ()):
        return False
    register(shell)
    return True
