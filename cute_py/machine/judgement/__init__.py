"""Judges of what is wrong in a run, beyond what ends it.

    observer    the events of a run, one method each; the machine calls them, judges override them
    judge       the judges of a run, and what they found
    races       accesses without an order, and what asynchronous work still uses
    rules       why a finding is one, and what may cure it; `tried` puts a cure in and runs again

A finding is a `Diagnostic`: an error is wrong under some schedule that the ISA permits, a warning is asked for by the
ISA and forgiven by the hardware, a note says what was not judged.
"""
