"""Content blocks: a table of shapes for each interface, the rule for other members, and what reads them."""
