"""Documents: their text, the parts it is cut into, and indexes over those."""
