"""Compare parts of the log with the record, in this process or in several."""
