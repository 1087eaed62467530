"""Tools for a conversation: their definitions, what is asked of them, which are chosen and shown."""
