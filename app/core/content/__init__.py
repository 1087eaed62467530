"""Context items: parse them into texts, edit those texts, find handles, and strip markup and hidden content."""
