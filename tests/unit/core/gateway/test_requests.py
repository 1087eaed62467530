"""What a request gives out to be scanned, and what it is when texts were changed."""

import copy
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import InternalError, InvalidArgumentsError, InvalidRequestError
from app.core.gateway.channels import ToolRunner
from app.core.gateway.families import anthropic_messages, openai_chat, openai_responses
from app.core.gateway.json_body import JsonBody
from app.core.gateway.member_table import LeafRole
from app.core.gateway.requests import GatewayRequest, value_at
from tests.unit.core.gateway.bodies import CHAT, LEGACY, MESSAGES, RESPONSES
from tests.unit.core.gateway.test_json_body import paths_of

PLANTED = "Ottilie Wundersam, ottilie@example.org, 0711 4711 0815"
BODIES = {
    "chat": (CHAT, openai_chat.REQUEST),
    "legacy": (LEGACY, openai_chat.LEGACY_REQUEST),
    "responses": (RESPONSES, openai_responses.REQUEST),
    "messages": (MESSAGES, anthropic_messages.REQUEST),
}


def request(body, table):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return GatewayRequest.read(JsonBody.parse(raw), table)


def with_value(body, path, value):
    changed = copy.deepcopy(body)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def strings_of(body):
    return [path for path in paths_of(body) if isinstance(value_at(body, path), str)]


@pytest.mark.parametrize("name", BODIES)
def test_a_value_in_any_position_is_given_out(name):
    body, table = BODIES[name]
    positions = strings_of(body)
    assert len(positions) > (5 if name == "legacy" else 50)
    unseen = []
    for path in positions:
        if path[-1] == "role":
            continue
        planted = request(with_value(body, path, PLANTED), table)
        if not any(PLANTED in leaf.leaf.text for leaf in planted.leaves()):
            unseen.append(path)
    assert not unseen


@pytest.mark.parametrize("name", BODIES)
def test_a_value_in_the_name_of_a_member_is_given_out(name):
    body, table = BODIES[name]
    for path in paths_of(body):
        place = value_at(body, path)
        if isinstance(place, dict):
            leaves = request(with_value(body, (*path, PLANTED), 1), table).leaves()
            assert any(PLANTED in leaf.leaf.text for leaf in leaves), path


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_the_value_gives_it_out_nowhere(name):
    leaves = list(request(*BODIES[name]).leaves())
    assert leaves and not any("Ottilie" in leaf.leaf.text for leaf in leaves)


@pytest.mark.parametrize("name", BODIES)
def test_every_leaf_stands_where_it_says(name):
    body, table = BODIES[name]
    for leaf in request(body, table).leaves():
        if leaf.leaf.place == "key":
            continue
        value = value_at(body, leaf.path)
        assert leaf.leaf.text in str(value) or leaf.in_json or leaf.leaf.value.encoding == "base64", leaf.path


@pytest.mark.parametrize(
    ("name", "path", "role"),
    [
        ("chat", ("messages", 0, "content"), LeafRole.SYSTEM),
        ("chat", ("messages", 1, "content", 0, "text"), LeafRole.SYSTEM),
        ("chat", ("messages", 2, "content", 0, "text"), LeafRole.USER),
        ("chat", ("messages", 2, "name"), LeafRole.NAME),
        ("chat", ("messages", 3, "refusal"), LeafRole.ASSISTANT),
        ("chat", ("messages", 3, "tool_calls", 0, "function", "arguments"), LeafRole.ASSISTANT),
        ("chat", ("messages", 4, "content"), LeafRole.TOOL_RESULT),
        ("chat", ("tools", 0, "function", "description"), LeafRole.TOOLS),
        ("chat", ("response_format", "json_schema", "description"), LeafRole.FORMAT),
        ("chat", ("stop", 0), LeafRole.STOP),
        ("chat", ("metadata", "ticket"), LeafRole.METADATA),
        ("chat", ("user",), LeafRole.USER_ID),
        ("legacy", ("prompt", 1), LeafRole.USER),
        ("responses", ("instructions",), LeafRole.SYSTEM),
        ("responses", ("input", 0, "content"), LeafRole.USER),
        ("responses", ("input", 3, "summary", 0, "text"), LeafRole.SIGNED),
        ("responses", ("input", 4, "summary", 0, "text"), LeafRole.ASSISTANT),
        ("responses", ("input", 6, "output"), LeafRole.TOOL_RESULT),
        ("messages", ("system", 0, "text"), LeafRole.SYSTEM),
        ("messages", ("messages", 1, "content", 0, "thinking"), LeafRole.SIGNED),
        ("messages", ("messages", 1, "content", 3, "input", "to"), LeafRole.ASSISTANT),
        ("messages", ("messages", 2, "content", 0, "content", 0, "text"), LeafRole.TOOL_RESULT),
        ("messages", ("messages", 2, "content", 2, "text"), LeafRole.USER),
        ("messages", ("metadata", "user_id"), LeafRole.USER_ID),
        ("messages", ("stop_sequences", 0), LeafRole.STOP),
    ],
)
def test_a_leaf_says_whose_it_is(name, path, role):
    assert [leaf.role for leaf in request(*BODIES[name]).leaves() if leaf.path == path][:1] == [role]


def test_what_no_table_names_and_what_nobody_reads_is_counted():
    unscanned = request({**CHAT, "brand_new": {"a": "b"}}, openai_chat.REQUEST).unscanned
    assert unscanned == {"unknown": 1, "image": 1, "audio": 2, "file": 1}
    assert request(LEGACY | {"prompt": [[1, 2]]}, openai_chat.LEGACY_REQUEST).unscanned == {"tokens": 1}
    assert request(RESPONSES, openai_responses.REQUEST).unscanned["unknown"] == 1


PICTURE = "iVBORw0KGgo" + "Ab3x" * 60
MIXED = (
    *({"role": role, "content": f"See {PICTURE} here, {PICTURE}"} for role in ("user", "tool", "system")),
    {"role": "user", "content": f'{{"a": "{PICTURE}"}}'},
    {"role": "user", "content": "x" * 500},
    {"role": "user", "content": [{"type": "text", "text": PICTURE}]},
    {"role": "user", "content": [{"type": "brand_new", "text": "a"}, {"type": "image_url"}]},
    {"role": "assistant", "content": None, "audio": {"data": PICTURE}},
    {"type": "brand_new", "text": "a"},
)


PICKED = [picked for size in (1, 2) for picked in itertools.combinations(MIXED, size)]


@pytest.mark.parametrize("picked", PICKED)
def test_what_nobody_reads_is_counted_as_in_a_context(picked):
    asked = request({"model": "gpt-5", "messages": list(picked)}, openai_chat.REQUEST)
    context = asked.edited.context
    skipped = sum(context.skipped.values())
    assert asked.unscanned == context.unseen | ({"unknown": skipped} if skipped else {})


def test_a_message_without_a_form_is_refused_at_its_place():
    for wrong in ({"role": 5, "content": "a"}, {"role": "user", "content": 5}):
        asked = request({"messages": [{"role": "user", "content": "a"}, wrong]}, openai_chat.REQUEST)
        with pytest.raises(InvalidArgumentsError) as error:
            asked.unscanned  # noqa: B018
        assert error.value.details["pointer"].startswith("/context/1/")


def test_arguments_are_read_as_json():
    arguments = [leaf for leaf in request(*BODIES["chat"]).leaves() if leaf.path[-1] == "arguments"]
    assert {leaf.leaf.text for leaf in arguments} == {"b", "x"} and all(leaf.in_json for leaf in arguments)
    texts = [leaf for leaf in request(*BODIES["chat"]).leaves() if leaf.path == ("messages", 0, "content")]
    assert not any(leaf.in_json for leaf in texts)


@pytest.mark.parametrize("name", BODIES)
def test_changed_texts_are_the_only_difference(name):
    body, table = BODIES[name]
    raw = json.dumps(body, indent=1).encode()
    before = request(raw, table)
    paths = [leaf.path for leaf in before.leaves() if leaf.leaf.place == "text" and not leaf.in_json]
    assert before.changed(before.items).to_bytes() == raw
    items = json.loads(json.dumps(before.items).replace('"hello"', '"hallo ö"'))
    changed = before.changed(items)
    assert changed.to_bytes() == raw.replace(b'"hello"', '"hallo ö"'.encode())
    twice = changed.changed(json.loads(json.dumps(items).replace("hallo", "servus")))
    assert twice.to_bytes() == raw.replace(b'"hello"', '"servus ö"'.encode())
    assert paths


def test_a_number_that_became_a_handle_is_written():
    tool = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"n": 49711}}],
    }
    before = request({"messages": [tool], "max_tokens": 1.50}, anthropic_messages.REQUEST)
    items = json.loads(json.dumps(before.items).replace("49711", '"[PHONE_1]"'))
    assert before.changed(items).to_bytes() == before.to_bytes().replace(b"49711", b'"[PHONE_1]"')


@pytest.mark.parametrize(
    ("name", "added", "expected"),
    [
        ("chat", {"role": "user", "content": "first"}, ("messages", 0, "content")),
        ("messages", {"role": "user", "content": "first"}, ("messages", 0, "content")),
        ("responses", {"role": "user", "content": "first"}, ("input", 0, "content")),
    ],
)
def test_what_a_middleware_adds_stands_in_front(name, added, expected):
    before = request(*BODIES[name])
    after = before.changed([added, *before.items])
    assert value_at(json.loads(after.to_bytes()), expected) == "first"
    assert any(leaf.leaf.text == "be brief" for leaf in after.leaves())
    again = after.changed([{**added, "content": "second"}, *after.items[1:]])
    assert value_at(json.loads(again.to_bytes()), expected) == "second"


def test_additions_go_beside_a_plain_input():
    before = request({"input": "hello"}, openai_responses.REQUEST)
    after = json.loads(before.changed([{"role": "user", "content": "first"}, *before.items]).to_bytes())
    assert [message["content"] for message in after["input"]] == ["first", "hello"]


def test_a_missing_item_is_an_error():
    before = request(*BODIES["chat"])
    with pytest.raises(InternalError):
        before.changed(before.items[1:])
    with pytest.raises(InvalidRequestError):
        request([], openai_chat.REQUEST)


@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_a_note_stands_before_the_instructions(name):
    body, table = BODIES[name]
    noted = json.loads(request(body, table).to_bytes("Handles."))
    assert request(body, table).with_note("Handles.").to_bytes() == request(body, table).to_bytes("Handles.")
    first = {"chat": "messages", "responses": "instructions", "messages": "system"}[name]
    assert "Handles." in json.dumps(noted[first])
    assert json.dumps(noted).index("Handles.") < json.dumps(noted).index("be brief")


@pytest.mark.parametrize("value", [None, "hello", 5, True, {"a": 1}, ...])
@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_a_conversation_of_no_known_form_stays_beside_the_note(name, value):
    member = "input" if name == "responses" else "messages"
    body = {"model": "m", **({} if value is ... else {member: value})}
    for written in (
        request(body, BODIES[name][1]).to_bytes("Handles."),
        request(body, BODIES[name][1]).changed(request(body, BODIES[name][1]).items).to_bytes(),
    ):
        sent = json.loads(written)
        assert sent.get(member, ...) == value and sent["model"] == "m"


def test_a_list_that_changed_as_a_whole_has_the_note_too():
    came = request(
        {"system": [{"type": "text", "text": "be kind"}], "messages": []}, anthropic_messages.REQUEST
    )
    system, *rest = came.items
    longer = {**system, "content": [*system["content"], {"type": "text", "text": "be brief"}]}
    sent = json.loads(came.changed([longer, *rest]).to_bytes("Handles."))
    assert [block["text"] for block in sent["system"]] == ["Handles.", "be kind", "be brief"]


def test_a_plain_system_text_keeps_its_words_beside_the_note():
    noted = request({"system": "be kind", "messages": []}, anthropic_messages.REQUEST).with_note("Handles.")
    system = json.loads(noted.to_bytes())["system"]
    assert [block["text"] for block in system] == ["Handles.", "be kind"]
    assert "cache_control" in system[0] and "cache_control" not in system[1]


def test_facts_of_a_conversation():
    facts = request(RESPONSES | {"previous_response_id": "resp_1"}, openai_responses.REQUEST).facts
    assert (facts.model, facts.conversation, facts.previous_response) == ("gpt-5", "conv_1", "resp_1")
    assert facts.sessions == {"prompt_cache_key": "k-1", "safety_identifier": "u-1"}
    assert facts.first_user_texts == ("hello",)
    runners = {tool.name: tool.runner for tool in facts.tools}
    assert runners["f"] is ToolRunner.CLIENT and runners["s"] is ToolRunner.PROVIDER
    assert (
        request({"conversation": "conv_2", "input": "hi"}, openai_responses.REQUEST).facts.conversation
        == "conv_2"
    )


def test_the_first_message_is_the_same_with_and_without_cache_marks():
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    }
    bodies = ({"messages": [marked]}, {"messages": [{"role": "user", "content": "hi"}]})
    assert {request(body, anthropic_messages.REQUEST).facts.first_user_texts for body in bodies} == {("hi",)}
    web = request(*BODIES["messages"]).facts
    assert [tool.runner for tool in web.tools] == [ToolRunner.CLIENT, ToolRunner.PROVIDER]
    assert web.sessions == {"metadata.user_id": "user_1_session_2"} and not web.stream


TURN = st.text(alphabet='ab é"\\\n🙂', max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(TURN, min_size=2, max_size=8), st.sampled_from(["chat", "messages", "responses"]), st.booleans()
)
def test_a_prefix_of_a_conversation_stays_byte_for_byte(turns, name, plain):
    table, member = BODIES[name][1], {"responses": "input"}.get(name, "messages")
    sent = []
    for size in range(1, len(turns) + 1):
        messages = [{"role": "user", "content": turn} for turn in turns[:size]]
        before = request(json.dumps({"model": "m", member: messages}, ensure_ascii=plain).encode(), table)
        items = [{**item, "content": item["content"].replace("a", "[PERSON_1]")} for item in before.items]
        sent.append(before.changed(items).to_bytes())
    for earlier, later in itertools.pairwise(sent):
        assert later.startswith(earlier[: -len(b"]}")])


PIECES = st.sampled_from(["Anna", "so", "é", '"', "\n", " ", "[1]", "🙂"])
WORDS = st.lists(PIECES, min_size=1, max_size=6).map(" ".join)
TURNS = st.one_of(
    WORDS.map(lambda text: [{"role": "user", "content": text}]),
    WORDS.map(lambda text: [{"role": "assistant", "content": [{"type": "text", "text": text}]}]),
    WORDS.map(
        lambda text: [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"q": text}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]},
        ]
    ),
)


def hidden(items):
    return json.loads(json.dumps(items, ensure_ascii=False).replace("Anna", "[PERSON_1]"))


@settings(max_examples=100, deadline=None)
@given(st.lists(TURNS, min_size=3, max_size=30), st.integers(0, 2), WORDS, st.booleans())
def test_two_requests_of_a_conversation_share_what_their_unredacted_forms_share(turns, late, edit, plain):
    """The last turns may be edited; what stood before them stays byte for byte."""
    messages = [message for turn in turns for message in turn]
    edited = [*messages[: len(messages) - late], {"role": "user", "content": edit}]
    came, sent = [], []
    for conversation in (messages, edited):
        body = {"model": "m", "system": "for Anna", "tools": MESSAGES["tools"], "messages": conversation}
        came.append(json.dumps(body, ensure_ascii=plain))
        before = request(came[-1].encode(), anthropic_messages.REQUEST)
        sent.append(before.changed(hidden(before.items)).to_bytes().decode())
    shared = common(messages_of(came))
    assert common(messages_of(sent))[: len(shared)] == hidden(shared)
    written = [text.rpartition('"messages": [')[0] for text in sent]
    assert written[0] == written[1] and "[PERSON_1]" in written[0]
    raws = [JsonBody(text).raws([("messages", number) for number in range(len(shared))]) for text in sent]
    assert raws[0] == raws[1]


def common(pair):
    """Return what two lists of messages have in common at their beginning."""
    return [
        first
        for first, second in itertools.takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False))
    ]


def messages_of(texts):
    return [json.loads(text)["messages"] for text in texts]


NESTED = st.recursive(
    st.just(PLANTED) | st.integers() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "id", "name", "url", "content", "x y"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(NESTED, st.data(), st.sampled_from(sorted(BODIES)))
def test_whatever_a_new_member_holds_is_given_out(value, data, name):
    """A provider may add members and blocks of any form at any place, without waiting for a table."""
    body, table = BODIES[name]
    holders = [path for path in paths_of(body) if isinstance(value_at(body, path), dict)]
    place = (*data.draw(st.sampled_from(holders)), "brand_new")
    planted = request(with_value(body, place, value), table)
    texts = [
        leaf for leaf in planted.leaves() if PLANTED in leaf.leaf.text and leaf.path[: len(place)] == place
    ]
    positions = [path for path in paths_of(value) if value_at(value, path) == PLANTED]
    assert {leaf.path[len(place) :] for leaf in texts} >= set(positions)


def test_documents_are_those_that_answers_cite_by_number():
    scan = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    }
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [scan]}
    body = copy.deepcopy(MESSAGES)
    body["messages"][2]["content"].append(result)
    before = request(body, anthropic_messages.REQUEST)
    assert before.documents == ("born in Bern", "")
    after = before.changed(json.loads(json.dumps(before.items).replace("Bern", "[LOCATION_1]")))
    assert after.documents == ("born in [LOCATION_1]", "")
    assert request(CHAT, openai_chat.REQUEST).documents == ()


def test_a_member_that_got_another_name_is_written():
    before = request({"messages": [], "metadata": {"Ottilie": "x", "n": 1.0}}, openai_chat.REQUEST)
    items = json.loads(json.dumps(before.items).replace("Ottilie", "[PERSON_1]"))
    assert json.loads(before.changed(items).to_bytes())["metadata"] == {"[PERSON_1]": "x", "n": 1.0}
    odd = request({"messages": [], "Ottilie W.": "x"}, openai_chat.REQUEST)
    with pytest.raises(InternalError):
        odd.changed(json.loads(json.dumps(odd.items).replace("Ottilie W.", "[PERSON_1]")))
