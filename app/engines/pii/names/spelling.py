"""Spell words as lists hold them; without the libraries of the tagger, since the server uses it, too."""


def lowered(word: str) -> str:
    """Return the word in small letters; a capital I with a dot becomes a plain i, without a mark of its own."""
    return word.lower() if word.isascii() else word.lower().replace("i\u0307", "i")
