"""Collections over REST."""
