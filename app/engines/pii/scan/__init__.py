"""Scan once: one pass over an image of the text says where which pattern may match, and only there it runs.

What a recognizer must offer so that it needs no pass of its own:

* Presidio's `PatternRecognizer` with its own matching, and `ExactPatterns`: nothing. The expressions of the pass are
  derived from the patterns (`superset.py`), whatever the registry: shipped, from YAML, deny lists, code.
* A recognizer with an ``analyze`` of its own: the two attributes of `once.Windowed`, else it is run whole.
* ``gate`` of `ExactPatterns`: for a pattern without a limit, what each finding of it holds.

Whatever cannot be derived is run over the whole text, and the log says so when the recognizers are loaded.
"""
