"""Checkpoints in .safetensors files: convert their weights to and from block-scaled formats, and describe their
tensors."""

from cute_py.checkpoints.convert import ConversionReport as ConversionReport
from cute_py.checkpoints.convert import ConvertedTensor as ConvertedTensor
from cute_py.checkpoints.convert import convert as convert
from cute_py.checkpoints.describe import CheckpointDescription as CheckpointDescription
from cute_py.checkpoints.describe import describe_checkpoint as describe_checkpoint
from cute_py.checkpoints.source import Checkpoint as Checkpoint
from cute_py.checkpoints.source import open_checkpoint as open_checkpoint
