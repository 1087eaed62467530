"""Words end where letters of another script begin: values of every kind are found glued to any of them."""

import random
from collections.abc import Iterator

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS
from app.engines.pii.search.analyzer import Analyzer
from app.engines.views.glued import glued_view
from tests.pii_identifiers import KINDS
from tests.pii_national import CASES
from tests.sampling import sample
from tests.unit.engines.pii.conftest import Find

GLUE = {
    "Japanese": ("これは", "です"),
    "Chinese": ("号码是", "谢谢"),
    "Korean": ("번호는", "입니다"),
    "Thai": ("คือ", "ครับ"),
    "Arabic": ("رقم", "شكرا"),
    "Hebrew": ("מספר", "תודה"),
    "Devanagari": ("नंबर", "है"),
    "Tamil": ("எண்", "நன்றி"),
    "Cyrillic": ("номер", "это"),
    "Greek": ("είναι", "και"),
    "Armenian": ("համար", "է"),
    "underscores": ("user_", "_old"),
    "line breaks of a program": ("\\n", "\\n"),
    "tabs of a program": ("a\\t", "\\tb"),
}

Placed = tuple[str, int, int]


def placed(before: str, value: str, after: str) -> Placed:
    return before + value + after, len(before), len(before) + len(value)


def kinds(left: str, right: str) -> Iterator[tuple[str, Placed, Placed]]:
    """Yield a value of each kind, glued to ``left`` and ``right``, and with blanks between."""
    for name, kind in KINDS.items():
        # An address that begins or ends with words is no value that a program joins with underscores.
        if not (kind.bare or kind.cues) or (name == "address" and "_" in left):
            continue
        draw = random.Random(f"{name} {left}")
        value, cue = kind.value(draw), "" if kind.bare else f"{draw.choice(kind.cues)}: "
        yield name, placed(left + cue, value, right), placed(f"{left} {cue}", value, f" {right}")


def national(suite: str, count: int) -> Iterator[tuple[str, Placed, Placed]]:
    """Yield national identifiers behind their words; a word of the glue's own script does not end at the glue."""
    for case in sample(suite, CASES, count):
        draw = random.Random(f"{suite} {case.entity}")
        left, right = GLUE[draw.choice(list(GLUE) if case.word.isascii() else ["underscores"])]
        value = next(case.values(draw))
        yield (
            case.entity,
            placed(f"{left}{case.word}: ", value, right),
            placed(f"{left} {case.word}: ", value, f" {right}"),
        )


def is_found(analyzer: Analyzer, where: Placed, *, strict: bool) -> bool:
    text, start, end = where
    spans = analyzer.scan(text, DetectionOptions(strict=strict))
    return all(
        any(span.start <= place < span.end for span in spans)
        for place in range(start, end)
        if text[place].isalnum()
    )


def lost(
    analyzer: Analyzer, values: Iterator[tuple[str, Placed, Placed]], *, strict: bool = False
) -> tuple[list[str], int]:
    """Return the texts whose value is only found with blanks around it, and how many values were tried."""
    tried = [
        (name, glued)
        for name, glued, apart in values
        if (strict or not KINDS.get(name, KINDS["ip"]).strict) and is_found(analyzer, apart, strict=strict)
    ]
    return [glued[0] for _, glued in tried if not is_found(analyzer, glued, strict=strict)], len(tried)


@pytest.mark.parametrize("glue", GLUE)
def test_values_of_every_kind_are_found_glued_to_letters_of_any_script(analyzer: Analyzer, glue: str) -> None:
    missed, tried = lost(analyzer, kinds(*GLUE[glue]))
    assert missed == []
    assert tried >= 30


@pytest.mark.parametrize("glue", sample("strict glue", sorted(GLUE), 3))
def test_strict_finds_them_too(analyzer: Analyzer, glue: str) -> None:
    missed, tried = lost(analyzer, kinds(*GLUE[glue]), strict=True)
    assert missed == []
    assert tried >= 30


def test_national_identifiers_are_found_glued_to_letters_of_other_scripts(analyzer: Analyzer) -> None:
    missed, tried = lost(analyzer, national("glued national identifiers", 60))
    assert missed == []
    assert tried >= 45


@pytest.mark.parametrize("glue", ["Japanese", "Arabic", "underscores"])
def test_without_the_view_most_of_them_would_be_missed(analyzer: Analyzer, glue: str) -> None:
    """The negative control: the patterns alone go on with the word."""

    def seen(where: Placed) -> bool:
        text, start, end = where
        found = analyzer._search.findings(text, DetectionOptions())
        return any(finding.start <= start and finding.end >= end for finding in found)

    glued = [where for _, where, _ in kinds(*GLUE[glue])]
    assert sum(map(seen, glued)) * 3 < len(glued)


@pytest.mark.parametrize(
    ("text", "what", "label"),
    [
        ("MRNは00482913です", "00482913", "MRN"),
        ("customer number는4711-88입니다", "4711-88", "CUSTOMER_ID"),
        ("電話は+81 90-1234-5678まで", "+81 90-1234-5678", "PHONE"),
        ("卡号З4111111111111111З", "4111111111111111", "CARD"),
        ("卡号①4111111111111111②", "4111111111111111", "CARD"),
        ("番号は４１１１１１１１１１１１１１１１です", "４１１１１１１１１１１１１１１１", "CARD"),
        ("番号は&#52;111111111111111です", "&#52;111111111111111", "CARD"),
        ("ชื่อJohn Smithครับ my name is John Smith", "John Smith", "PERSON"),
        ("backup_192.168.10.41_full.tar", "192.168.10.41", "IP"),
        ("log\\n(555) 123-4567\\n", "(555) 123-4567", "PHONE"),
        ("row\\v4111111111111111", "4111111111111111", "CARD"),
        ("連絡先はsato.ken@kaisha.jpです", "sato.ken@kaisha.jp", "EMAIL"),
        ("邮箱li.na@gongsi.cn谢谢", "li.na@gongsi.cn", "EMAIL"),
        ("อีเมลsiri@boran.thครับ", "siri@boran.th", "EMAIL"),
        ("البريدomar@sharika.saشكرا", "omar@sharika.sa", "EMAIL"),
        ("почтаivan@firma.ruили", "ivan@firma.ru", "EMAIL"),
        # Signs, a domain and lookalikes belong to the address.
        ("山田.sato@例え.jp", "山田.sato@例え.jp", "EMAIL"),
        ("用户@例子.广告", "用户@例子.广告", "EMAIL"),
        ("аnna.bell@example.org", "аnna.bell@example.org", "EMAIL"),
    ],
)
def test_a_finding_is_the_value_alone(find: Find, text: str, what: str, label: str) -> None:
    assert (what, label) in find(text)


def test_each_value_of_a_sentence_without_blanks_is_found_alone(find: Find) -> None:
    found = find("担当のメールはsato.ken@kaisha.jpで電話は03-5253-1234です")
    assert found == [("sato.ken@kaisha.jp", "EMAIL"), ("03-5253-1234", "PHONE")]


ORDINARY = [
    "今日は2024年5月6日、気温は25度です。価格は1200円、GitHubで3件のPRがあり、Python3を使います。第12章、10人",
    "今天是2024年5月6日，温度25度，共1200元，使用Python3和GitHub，第3页。",
    "오늘은 2024년 5월 6일이고 값은 1200원, Python3으로 작성했습니다.",
    "วันที่6พฤษภาคม2567 ใช้Python3กับGitHub เวลา15.30น.",
    "في عام2024 كان السعر1200ريال مع Python3و GitHub",
    "בשנת2024 המחיר1200שקל עם Python3ו GitHub",
    "वर्ष2024 में1200रुपये और Python3का प्रयोग",
    "Версия10 вышла в2024 году, файлы PDFы и IT-отдел",
    "def load_user_2024(sha_256, x_12): return utf_8_sig + int_32 * 10_000_000",
    "IMG_20240115_123456.jpg and report_2024_01_15_v2_final.pdf",
    "commit_5f4dcc3b5aa765d61d8327deb882cf99 trace_4bf92f3577b34da6a3ce929d0e0e4736 req_01H8XGJWBWBAQ4N1JZ5Z3FZ5XG",
    "cus_9s6XKzkNRiz8i3 acct_1032D82eZvKYlo2C price_1MoBy5LkdIwHu7ixZhnattbh id_9876543210 ts_1700000000",
    "DATABASE_URL MAX_SIZE_4096 ERR_CONNECTION_REFUSED_1001 __FILE__ __init_2__",
    "print('a\\n1234\\t5678\\n') \\d{3}\\w+\\b \\begin{tabular} C:\\new\\temp\\foo\\bar \\v12",
    "x₁₂ + y² = 10³ ①②③ ½ H₂O 5µm 20℃",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_in_these_scripts_and_code_hold_nothing_more(analyzer: Analyzer, text: str) -> None:
    seen = {finding[:3] for finding in analyzer._search.findings(text, DetectionOptions())}
    found = {(span.start, span.end, span.label) for span in analyzer.scan(text, DetectionOptions())}
    assert found <= seen
    assert {label for _, _, label in found} <= NAME_LABELS


@pytest.mark.parametrize(
    "text",
    ["plain ASCII, 123-45-6789", "snake_case_names and more_of_them", "naïve café", "今日は", "\ud800"],
)
def test_texts_without_such_a_border_have_no_view(text: str) -> None:
    assert glued_view(text) is None


def test_a_view_maps_to_the_text_at_every_place() -> None:
    text = "は4111は x_12_y であabc12 номер7"
    view = glued_view(text)
    assert view is not None
    assert view.text == "は 4111 は x_ 12 _y であ abc12 номер 7"
    for place, character in enumerate(view.text):
        low, high = view.original_span(place, place + 1)
        assert text[low:high] == character or (character == " " and low == high)
