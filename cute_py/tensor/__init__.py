"""Tensors: engines (pointers, arrays, iterators) with layouts; how they are partitioned and printed."""

from cute_py.deprecations import export_public
from cute_py.tensor.arrays import ArrayEngine as ArrayEngine
from cute_py.tensor.latex import *
from cute_py.tensor.partition import *
from cute_py.tensor.pointers import *
from cute_py.tensor.printing import format_tensor as format_tensor
from cute_py.tensor.printing import ostream_text as ostream_text
from cute_py.tensor.printing import print_tensor as print_tensor
from cute_py.tensor.tensor import *

export_public(__name__)
