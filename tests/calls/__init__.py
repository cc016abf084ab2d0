"""A seeded, valid call of every public name, as text: what the fuzzer mutates and the characterisation records."""
