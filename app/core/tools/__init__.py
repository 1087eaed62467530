"""Tools for a conversation: their definitions, the request to rank them on, selection and disclosure."""
