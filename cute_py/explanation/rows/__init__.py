"""The known messages as data, the code that finds them in text, and the functions that compute their changes."""
