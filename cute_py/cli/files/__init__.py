"""Commands that convert files of tensors, and the command that writes files for coding agents."""
