"""Deliver the audit record to places outside: the form of events, and how far each place is."""
