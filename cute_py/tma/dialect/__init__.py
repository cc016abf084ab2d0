"""The TMA dialect of the reference pages: operations, partition verifier, record and lowering stages.

Each module lists its public names.
"""

from cute_py.deprecations import export_public
from cute_py.tma.dialect.atoms import *
from cute_py.tma.dialect.descriptor_update import *
from cute_py.tma.dialect.descriptors import *
from cute_py.tma.dialect.exec_atom import *
from cute_py.tma.dialect.legacy_copy import *
from cute_py.tma.dialect.lowering import *
from cute_py.tma.dialect.mlir_text import *
from cute_py.tma.dialect.modes import *
from cute_py.tma.dialect.phases import *
from cute_py.tma.dialect.rebind import *
from cute_py.tma.dialect.record import *
from cute_py.tma.dialect.verifier import *
from cute_py.tma.dialect.verifier_operands import *

export_public(__name__)
