"""Judges: observers of a run that find errors in the kernel beyond the faults that end the run.

    observer    the events of a run, one method each; the machine calls them, judges override them
    judge       the judges of a run, and what they found
    races       accesses without an order, and accesses to memory that asynchronous work still uses
    rules       the reason for each rule, and changes that may cure a finding; `tried` applies a change and runs again

A finding is a `Diagnostic` with one of three severities. An error gives wrong results under some schedule that the ISA
permits. A warning breaks a rule of the ISA, but hardware tolerates it. A note names a property that was not judged.
"""
