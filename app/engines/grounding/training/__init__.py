"""How the weights of the embedded grounding judge are made."""
