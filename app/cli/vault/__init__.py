"""Commands for the vault and people's rights."""
