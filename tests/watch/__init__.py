"""Programs watched: the records, the report, and the injected library with a driver of its own."""
