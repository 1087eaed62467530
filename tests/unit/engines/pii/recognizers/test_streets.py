"""Street addresses of the north and the east are hidden whole, in small letters, too; roads with numbers are none."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer

ADDRESSES = [
    "Storgatan 12, 114 51 Stockholm",
    "Sveavägen 44, lgh 1202",
    "Storgata 15, 0184 Oslo",
    "Karl Johans gate 22, 0026 Oslo",
    "Solveien 3",
    "Nørrebrogade 45, 2. tv, 2200 København N",
    "Strandvejen 112, 2900 Hellerup",
    "Mannerheimintie 12 A 5, 00100 Helsinki",
    "Puistotie 7",
    "storgata 15, 0184 oslo",
    "mannerheimintie 12, 00100 helsinki",
    "storgatan 12, 114 51 stockholm",
    "ul. Długa 5, 31-147 Kraków",
    "ul. długa 5, 31-147 kraków",
    "Václavské náměstí 1, 110 00 Praha",
    "1052 Budapest, Váci utca 12",
    "Kossuth Lajos tér 1-3, 1055 Budapest",
    "Str. Victoriei nr. 12, București",
    "Bulevardul Unirii nr. 7, bl. 3, sc. A, ap. 12, București",
    "Atatürk Caddesi No: 12 D: 3, Kadıköy, İstanbul",
    "Jl. Sudirman No. 25, Jakarta 10220",
    "25 Đường Lê Lợi, Phường Bến Nghé",
    "via roma 23, 00184 roma",
    "221b baker street london nw1 6xe",
]


def addresses(analyzer: Analyzer, text: str) -> list[str]:
    spans = analyzer.analyze(text, DetectionOptions(names="fast", entities=frozenset({"ADDRESS"})))
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_hidden_whole(analyzer: Analyzer, address: str) -> None:
    found = addresses(analyzer, f"- {address}\n")
    assert len(found) == 1
    assert address in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "Valtatie 7 on suljettu.",
        "Fylkesveg 8 er stengd.",
        "Riksväg 40 är avstängd.",
        "A Kr. u. 3. században.",
        "The brigade 5 and the renegade 3 navigate 12 gates.",
        "Használja pl. FS 350 típust.",
        "Storgatan är avstängd hela veckan.",
    ],
)
def test_roads_and_other_numbers_are_no_addresses(analyzer: Analyzer, text: str) -> None:
    assert addresses(analyzer, text) == []
