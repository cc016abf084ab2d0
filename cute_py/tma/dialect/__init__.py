"""The surface of the TMA reference pages: operations, verifier, record, stages. Each module lists its public names."""

from __future__ import annotations

from cute_py.tma.dialect.descriptors import *  # noqa: F403
from cute_py.tma.dialect.descriptors import __all__ as _descriptors
from cute_py.tma.dialect.exec_atom import *  # noqa: F403
from cute_py.tma.dialect.exec_atom import __all__ as _exec_atom
from cute_py.tma.dialect.legacy_copy import *  # noqa: F403
from cute_py.tma.dialect.legacy_copy import __all__ as _legacy_copy
from cute_py.tma.dialect.lowering import *  # noqa: F403
from cute_py.tma.dialect.lowering import __all__ as _lowering
from cute_py.tma.dialect.mlir_text import *  # noqa: F403
from cute_py.tma.dialect.mlir_text import __all__ as _mlir_text
from cute_py.tma.dialect.modes import *  # noqa: F403
from cute_py.tma.dialect.modes import __all__ as _modes
from cute_py.tma.dialect.non_exec_atom import *  # noqa: F403
from cute_py.tma.dialect.non_exec_atom import __all__ as _non_exec_atom
from cute_py.tma.dialect.phases import *  # noqa: F403
from cute_py.tma.dialect.phases import __all__ as _phases
from cute_py.tma.dialect.rebind import *  # noqa: F403
from cute_py.tma.dialect.rebind import __all__ as _rebind
from cute_py.tma.dialect.record import *  # noqa: F403
from cute_py.tma.dialect.record import __all__ as _record
from cute_py.tma.dialect.verifier import *  # noqa: F403
from cute_py.tma.dialect.verifier import __all__ as _verifier
from cute_py.tma.dialect.verifier_operands import *  # noqa: F403
from cute_py.tma.dialect.verifier_operands import __all__ as _verifier_operands

__all__ = [
    *_descriptors,
    *_exec_atom,
    *_legacy_copy,
    *_lowering,
    *_mlir_text,
    *_modes,
    *_non_exec_atom,
    *_phases,
    *_rebind,
    *_record,
    *_verifier,
    *_verifier_operands,
]
