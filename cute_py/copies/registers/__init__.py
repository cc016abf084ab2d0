"""Conversion of registers from one thread-value layout to another. The main module is `convert_tv`."""

from cute_py.copies.registers.convert_tv import RegisterConversion as RegisterConversion
from cute_py.copies.registers.convert_tv import convert_layout_tv as convert_layout_tv
from cute_py.copies.registers.steps import ConversionCost as ConversionCost
from cute_py.copies.registers.steps import ConversionStep as ConversionStep
from cute_py.deprecations import export_public

export_public(__name__)
