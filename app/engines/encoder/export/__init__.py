"""The recipe that makes the encoder's weights; nothing of it is needed at run time."""
