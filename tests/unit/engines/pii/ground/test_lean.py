"""Presidio is imported without what nobody needs, and that is there all the same for whoever does."""

import subprocess
import sys

_SCRIPT = """
import sys
from app.engines.pii.ground.lean import without_spacy
with without_spacy():
    import app.engines.pii.search.analyzer
assert not {"spacy", "thinc", "urllib3", "requests.api", "tldextract.tldextract"} & set(sys.modules)

import regex
from presidio_analyzer import Pattern
from presidio_analyzer.predefined_recognizers import EmailRecognizer
assert EmailRecognizer().PATTERNS[0].compiled_regex is None
try:
    Pattern("unclosed", "(", 0.5)
except ValueError:
    pass
else:
    raise AssertionError("patterns are checked again after the import")

import tldextract
offline = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
assert offline("example.co.uk").suffix == "co.uk"
import requests.exceptions
assert issubclass(requests.ConnectionError, requests.exceptions.RequestException)
"""


def test_presidio_is_imported_without_spacy_and_without_a_client_for_http():
    subprocess.run([sys.executable, "-c", _SCRIPT], check=True)
