"""What a caller sees: catalogs, lists, groups, concerns and progressive disclosure."""
