"""The accurate tagger of names: the shared sentence encoder, fine-tuned, as an int8 graph."""
