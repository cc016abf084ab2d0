"""The surface of the TMA reference pages: operations, verifier, record, stages. Each module lists its public names."""

from cute_py.moved import export_public
from cute_py.tma.dialect.copy_shape import *  # noqa: F403
from cute_py.tma.dialect.descriptors import *  # noqa: F403
from cute_py.tma.dialect.exec_atom import *  # noqa: F403
from cute_py.tma.dialect.legacy_copy import *  # noqa: F403
from cute_py.tma.dialect.lowering import *  # noqa: F403
from cute_py.tma.dialect.mlir_text import *  # noqa: F403
from cute_py.tma.dialect.modes import *  # noqa: F403
from cute_py.tma.dialect.non_exec_atom import *  # noqa: F403
from cute_py.tma.dialect.phases import *  # noqa: F403
from cute_py.tma.dialect.rebind import *  # noqa: F403
from cute_py.tma.dialect.record import *  # noqa: F403
from cute_py.tma.dialect.verifier import *  # noqa: F403
from cute_py.tma.dialect.verifier_operands import *  # noqa: F403

export_public(__name__)
