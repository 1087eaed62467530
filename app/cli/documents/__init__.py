"""Commands for documents of collections."""
