"""The recipe that makes the accurate tagger's weights; nothing of it is needed at run time."""
