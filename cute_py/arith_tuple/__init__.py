"""Coordinates as values: arithmetic tuples, basis strides, static ratios, iterators, and functions of nested tuples."""

from cute_py.arith_tuple.arith_tuple import *
from cute_py.arith_tuple.cells import text as text
from cute_py.arith_tuple.iterators import *
from cute_py.arith_tuple.ratio import Ratio as Ratio
from cute_py.arith_tuple.ratio import ratio as ratio
from cute_py.arith_tuple.tuple_functions import colex_less as colex_less
from cute_py.arith_tuple.tuple_functions import compact_order as compact_order
from cute_py.arith_tuple.tuple_functions import elem_geq as elem_geq
from cute_py.arith_tuple.tuple_functions import elem_gtr as elem_gtr
from cute_py.arith_tuple.tuple_functions import elem_leq as elem_leq
from cute_py.arith_tuple.tuple_functions import fold as fold
from cute_py.arith_tuple.tuple_functions import gcd as gcd
from cute_py.arith_tuple.tuple_functions import hier_unzip as hier_unzip
from cute_py.arith_tuple.tuple_functions import lex_less as lex_less
from cute_py.arith_tuple.tuple_functions import make_coord_iterator as make_coord_iterator
from cute_py.arith_tuple.tuple_functions import prefix_product as prefix_product
from cute_py.arith_tuple.tuple_functions import product_like as product_like
from cute_py.arith_tuple.tuple_functions import shape_mod as shape_mod
from cute_py.arith_tuple.tuple_functions import suffix_product as suffix_product
from cute_py.arith_tuple.tuple_functions import sum_ as sum_
from cute_py.arith_tuple.tuple_functions import tile_unzip as tile_unzip
from cute_py.arith_tuple.tuple_functions import transform_layout as transform_layout
from cute_py.arith_tuple.tuple_functions import transform_leaf as transform_leaf
from cute_py.arith_tuple.tuple_functions import tuple_max as tuple_max
from cute_py.arith_tuple.tuple_functions import zip_ as zip_
from cute_py.deprecations import export_public

export_public(__name__)
