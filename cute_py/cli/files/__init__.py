"""Commands about files of tensors and of instructions."""
