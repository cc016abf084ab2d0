"""The answers of the page: one function from what is typed on a tab to sections of HTML, code and a verdict."""
