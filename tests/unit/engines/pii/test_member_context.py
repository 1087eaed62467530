"""The words that recognizers rely on are also told from names of members, so that no list goes its own way."""

from app.core.content.telling_names import telling
from app.engines.pii.search.analyzer import Analyzer

TOO_COMMON = frozenset(
    """
    ag amtsgericht association australian bir call callback cestovni ci cod common date dial dos email epic eth
    ethereum ethernet extranjero f.nr feld fin finanzamt firma gesellschaft gmbh guid her his hra hrb idnr imss ip
    ipv4 ipv6 irn kg
    link mac mail moms msp praxis rdo reg rx self seria site sms sortie spi ss uen ug unique url uuid website
    """.split()  # noqa: SIM905 - a list of short strings reads worse
)
"""First words of context that names of members have for something else, or that only accents tell from such names."""


def test_a_member_named_like_a_word_of_context_tells_what_its_value_is(analyzer: Analyzer) -> None:
    recognizers = analyzer._search._scan.recognizers
    words = {word for recognizer in recognizers for word in recognizer.context or ()}
    silent = {
        word for word in words if not telling(word.replace(" ", "_")) and word.split(" ")[0] not in TOO_COMMON
    }
    assert len(words) > 1_000
    assert silent <= {
        *("e mail", "bank transfer", "cestovní pas"),
        *("nºss", "né", "rč", "r.č", "čop", "r.u.n"),
        # Short words that name other things, and words of two countries in one name.
        *("cin", "cns", "dpi", "ic", "kis", "kk", "mst", "psn", "pvc", "sus", "no ic", "no kp", "my kad"),
        *("kartu keluarga", "phil id", "phil sys", "mid number", "maisha namba", "bảo hiểm xã hội"),
        *("civil id", "kenyan id", "kuwait id", "qatar id", "qatari id", "saudi id", "uganda id"),
    }, sorted(silent)
