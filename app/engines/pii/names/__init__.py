"""Names of people, places and organizations: taggers, their words, languages."""
