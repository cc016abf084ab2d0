"""Single instructions on random operands: the emulated multiprocessor beside a device, bit by bit."""
