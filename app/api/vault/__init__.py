"""The vault and people's rights over REST."""
