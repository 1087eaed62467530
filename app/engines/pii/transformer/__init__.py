"""The accurate name tagger: the shared sentence encoder, fine-tuned, as an int8 graph."""
