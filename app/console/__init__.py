"""The console: pages for administrators, auditors and developers, over the same services as the API."""
