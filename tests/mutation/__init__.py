"""Mutants of the package: small changes of its code, each of which some test must notice.

`python -m tests.mutation` takes a seeded sample of the mutants of a package, runs against each the tests that cover its
line, and lists the ones that no test notices. `operators` makes the mutants, `__main__` runs them, `equivalent.txt`
lists mutants that compute the same, each with the reason.
"""
