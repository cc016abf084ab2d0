"""The answers of the page: one function from the input of a tab to sections of HTML, code and a verdict."""
