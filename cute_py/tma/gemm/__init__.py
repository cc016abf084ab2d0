"""A GEMM kernel from a tiled MMA and three TMA atoms: its plan, its source, and the object that runs it."""

from cute_py.deprecations import export_public
from cute_py.tma.gemm.kernel import GemmKernel as GemmKernel
from cute_py.tma.gemm.kernel import PreparedGemm as PreparedGemm
from cute_py.tma.gemm.kernel import gemm_kernel as gemm_kernel
from cute_py.tma.gemm.plan import GemmPlan as GemmPlan
from cute_py.tma.gemm.plan import check_gemm as check_gemm

export_public(__name__)
