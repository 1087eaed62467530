"""Context items: reading them into texts, editing those texts, handles, mark-up and hidden content."""
