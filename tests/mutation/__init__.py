"""Mutants of the package: small changes of its code, each of which some test must notice.

`python -m tests.mutation` takes a seeded sample of the mutants of a package, runs against each the tests that cover its
line, and lists the ones that no test notices. `operators` and `other_operators` make the mutants, `__main__` runs them,
`forked` runs them in forks of one session of pytest, `equivalent.txt` lists mutants that compute the same, each with
the reason.
"""
