"""The encoder that knows English alone has half a vote there, less in other languages, and none in other scripts."""

import pytest

from app.engines.documents.votes import vote_of_meaning
from app.engines.encoder import ENGINE

OURS = f"{ENGINE} 0123456789ab"
GERMAN = "Der Bericht wurde von der Abteilung in der letzten Woche geschrieben, und er ist nicht sehr lang geworden."
TURKISH = "Bu rapor geçen hafta bölüm tarafından yazıldı ve çok uzun değil, ama daha sonra bir ek gelecek."
ENGLISH = (
    "The report was written by the department in the last week, and it has not become very long, they say."
)


@pytest.mark.parametrize(
    ("embedder", "question", "texts", "vote"),
    [
        (OURS, "Who wrote the report of the department?", [ENGLISH] * 3, 0.5),
        (OURS, "report department", [ENGLISH] * 3, 0.5),
        (OURS, "report department", [], 0.5),
        (OURS, "Wer hat den Bericht der Abteilung geschrieben und nicht gelesen?", [ENGLISH] * 3, 0.2),
        (OURS, "Bericht Abteilung", [GERMAN] * 3, 0.2),
        (OURS, "Bericht Abteilung", [GERMAN, GERMAN, ENGLISH], 0.2),
        (OURS, "report", [GERMAN, ENGLISH, "E = mc"], 0.5),
        (OURS, "rapor", [TURKISH] * 2, 0.1),
        (OURS, "東京", [], 0.0),
        (OURS, "東京 iPhone", [ENGLISH], 0.5),
        (OURS, "42", ["この報告書は先週部署によって書かれました。長くはありません。"], 0.0),
        ("multilingual 1", "東京", [GERMAN], 0.5),
        (f"{ENGINE}-of-others 1", "東京", [], 0.5),
    ],
)  # fmt: skip
def test_votes(embedder: str, question: str, texts: list[str], vote: float) -> None:
    assert vote_of_meaning(embedder, question, texts) == vote
