"""Other readings of a text that was dressed up or encoded, each with an exact map back to the offsets of the text."""
