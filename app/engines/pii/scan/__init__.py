"""Scan once: one pass over an image of the text finds where each pattern may match, and patterns run only there.

What a recognizer must provide so that it needs no pass of its own:

* Presidio's `PatternRecognizer` with its own matching, and `ExactPatterns`: nothing. The expressions of the pass are
  derived from the patterns (`superset.py`), whatever the registry: shipped, from YAML, deny lists, code.
* A recognizer with its own ``analyze``: the two attributes of `rules.Windowed`, otherwise it runs over the whole text.
* ``gate`` of `ExactPatterns`: for a pattern of unlimited width, an expression that each finding contains.

Patterns for which nothing can be derived run over the whole text; a warning is logged when recognizers are loaded.
"""
