"""The most common top-level domains; a host name without a scheme counts only under one of them."""

from typing import Final

COMMON_TOPS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|me|tv|xyz|online|site|shop|blog|cloud|tech|uk|de|fr|it"
    "|es|nl|be|ch|at|pl|se|no|dk|fi|pt|ie|cz|ru|ua|tr|jp|cn|in|kr|au|nz|ca|us|mx|br|ar|za|eu"
)
"""Alternatives for a regular expression."""
