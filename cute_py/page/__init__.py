"""The playground page and its answers: one function maps the input of a tab to a verdict, sections of HTML, and
code."""
