"""The known messages as data, the engine that finds them, and the calculators of their changes."""
