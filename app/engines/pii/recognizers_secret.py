"""A few unmistakable forms of secrets: keys of clouds and services, private keys, tokens, assigned passwords."""

from app.engines.pii.patterns import ExactPatterns

_EDGE = r"(?<![A-Za-z0-9_\-])"
_PATTERNS = (
    (rf"{_EDGE}(?-i:(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[0-9A-Z]{{16}})(?![0-9A-Za-z])", 0.95),
    (
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^-]|-(?!----)){0,16384}(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
        0.99,
    ),
    (
        rf"{_EDGE}(?-i:eyJ[A-Za-z0-9_\-]{{8,4096}}+\.[A-Za-z0-9_\-]{{8,8192}}+\.[A-Za-z0-9_\-]{{0,4096}}+)",
        0.95,
    ),
    (rf"{_EDGE}(?-i:sk-(?:ant-|proj-|live-|test-)?[A-Za-z0-9_\-]{{20,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{{16,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:gh[pousr]_[A-Za-z0-9]{{30,256}}+|github_pat_[A-Za-z0-9_]{{30,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:glpat-[A-Za-z0-9_\-]{{16,256}}+|xox[abeoprs]-[A-Za-z0-9\-]{{10,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:AIza[A-Za-z0-9_\-]{{35}}|npm_[A-Za-z0-9]{{36}})(?![A-Za-z0-9_\-])", 0.95),
    (
        r"(?<![A-Za-z0-9])(?:pass(?:word|wd|phrase|code)|pwd|secret(?:[_\- ]?key)?|client[_\- ]secret|api[_\- ]?key"
        r"|access[_\- ]?(?:key|token)|auth[_\- ]?token|private[_\- ]?key|token)[\"']?\s{0,3}(?:[:=]|is\s)\s{0,3}"
        r"(?:bearer\s)?[\"']?(?P<value>[^\s\"'<>,;]{4,512}+)",
        0.6,
    ),
    (r"(?<![A-Za-z0-9])bearer\s{1,3}(?P<value>[A-Za-z0-9._~+/\-]{16,4096}+=*)", 0.7),
    (r"(?<![A-Za-z0-9])[a-z][a-z0-9+.\-]{1,20}://[^\s/:@\"']{0,64}:(?P<value>[^\s/@\"']{1,256})@", 0.8),
)


class SecretRecognizer(ExactPatterns):
    """Find secrets; in an assignment only the value counts."""

    needs_digit = False

    def __init__(self) -> None:
        super().__init__("SECRET", _PATTERNS)
