"""What users see, as text that a review can read: refusals, `--json`, `--help`.

    python -m tests.characterisation            compare with the record, and print the lines that differ
    python -m tests.characterisation --record   make the record anew, after a change that is meant

`recorded/` has one text file for each of the three. A change of a message shows in the diff of a commit.
"""
