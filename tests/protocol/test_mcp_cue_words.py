"""Words of many languages say what a value is, over both doors: in texts and as names of members."""

import json
from typing import Any

from tests.pii_cue_words import MEMBERS, NAMED, UNRELATED, UNRELATED_MEMBERS
from tests.protocol.test_mcp_member_names import PLACES, doors, leaves


def text_item(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


async def test_a_value_behind_a_word_of_another_language_is_hidden_and_nothing_else(tmp_path) -> None:
    items = [text_item(text) for text, *_ in NAMED]
    calm = [text_item(text) for text in UNRELATED]
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", items, exclude=["person"]):
            for (text, value, _), item in zip(NAMED, answer["content"], strict=True):
                assert value not in item["text"], text
                before, behind = text.split(value)
                assert item["text"].startswith(before) and item["text"].endswith(behind), text
        for answer in await opened.each("pii_redaction", calm, exclude=["person"]):
            assert answer["content"] == calm


async def test_a_member_in_another_language_names_its_value_and_other_members_stay(tmp_path) -> None:
    named: Any = {name: value for name, (value, _) in MEMBERS.items()}
    items = [place(value) for place in PLACES.values() for value in (named, UNRELATED_MEMBERS)]
    values = {str(value) for value in named.values()}
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", items, exclude=["person"]):
            for number, (item, done) in enumerate(zip(items, answer["content"], strict=True)):
                if number % 2:
                    assert done == item
                else:
                    assert not values & {str(leaf) for leaf in leaves(done)}, json.dumps(
                        done, ensure_ascii=False
                    )


async def test_an_explanation_agrees_with_the_redaction_on_such_texts(tmp_path) -> None:
    async with doors(tmp_path) as opened:
        for text, value, _ in NAMED[::3]:
            explained = await opened.post("/pii/explain", {"text": text})
            assert value in [text[span["start"] : span["end"]] for span in explained["spans"]], text
        for text in UNRELATED[::3]:
            explained = await opened.post("/pii/explain", {"text": text})
            shown = [text[span["start"] : span["end"]] for span in explained["spans"]]
            assert not any(map(str.isdecimal, "".join(shown))), text
