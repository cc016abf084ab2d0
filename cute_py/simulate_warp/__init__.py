"""The registers of warps and their shared memory in numpy, and PTX that runs on them. Read `warps` first."""

from cute_py.deprecations import export_public
from cute_py.simulate_warp.warps import Warps as Warps

export_public(__name__)
