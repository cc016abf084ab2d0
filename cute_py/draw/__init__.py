"""Pictures of layouts, tensors, atoms, copies and runs: SVG for notebooks and pages, text for a terminal.

`draw(thing)` chooses the picture by the type of the object; each other function draws one kind of object. A `Picture`
shows itself in a notebook, prints as text, and is saved as .svg, .png, .html or .txt.
"""

import importlib
import typing

from cute_py.deprecations import export_public, renamed
from cute_py.draw.bit_map import draw_descriptor as draw_descriptor
from cute_py.draw.boxes import draw_boxes as draw_boxes
from cute_py.draw.boxes import draw_multicast as draw_multicast
from cute_py.draw.dispatch import draw as draw
from cute_py.draw.im2col_window import draw_im2col as draw_im2col
from cute_py.draw.layouts import draw_compare as draw_compare
from cute_py.draw.layouts import draw_layout as draw_layout
from cute_py.draw.layouts import draw_tensor as draw_tensor
from cute_py.draw.page import html_page as html_page
from cute_py.draw.picture import Picture as Picture
from cute_py.draw.shards import draw_format as draw_format
from cute_py.draw.shards import draw_shards as draw_shards
from cute_py.draw.shared_memory import draw_smem as draw_smem
from cute_py.draw.shared_memory import draw_swizzle as draw_swizzle
from cute_py.draw.threads import draw_copy as draw_copy
from cute_py.draw.threads import draw_ldmatrix as draw_ldmatrix
from cute_py.draw.threads import draw_mma as draw_mma
from cute_py.draw.threads import draw_tv as draw_tv

if typing.TYPE_CHECKING:
    from cute_py.draw.tensor_memory import draw_tmem as draw_tmem

_LATER = {
    "explorer_page": "cute_py.page.document",
    "draw_tmem": "cute_py.draw.tensor_memory",
}
_ENDED = {
    "draw_pipeline": (
        "cute_py.draw.timeline.draw_pipeline",
        "use cute_py.draw.draw(run.timeline()) with a run of cute_py.run_ptx",
    )
}

if not typing.TYPE_CHECKING:  # type checkers then report misspelled names
    _find_ended = renamed(__name__, {}, _ENDED, stacklevel=3)

    def __getattr__(name):
        """Import the module of a picture function when the function is first used."""
        if name not in _LATER:
            return _find_ended(name)
        return getattr(importlib.import_module(_LATER[name]), name)


__all__ = export_public(__name__, *_LATER)
