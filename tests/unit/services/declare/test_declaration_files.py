"""The declarative file: what it says, in JSON and YAML, and how each fault is told with file, line and reason."""

import pytest

from app.services.declare.declaration_files import MAX_BYTES, FileError, read_file, read_text

WHOLE = b"""\
{
\t"$schema": "https://example.com/schema.json",
\t"mcpServers": {
\t\t"crm": {"command": "node", "args": ["crm.js"], "env": {"TOKEN": "${CRM_TOKEN}"}},
\t\t"docs": {"type": "streamable-http", "url": "https://docs.example.com/mcp",
\t\t\t"headers": {"Authorization": "Bearer ${DOCS_TOKEN:-none}"}}
\t},
\t"groups": [{"name": "customers", "title": "Customers", "members": [{"kind": "tool", "name": "crm__*"}]}],
\t"concerns": [{"name": "security", "description": "How careful.", "values": ["low", "high"], "default": "low"}],
\t"concernMappings": [{"kind": "tool", "name": "crm__delete", "concerns": {"security": "low"}}],
\t"toolFilter": {"crm": ["-drop"], "docs": null},
\t"aliases": {"lookup": "crm__find"},
\t"disclosure": {"docs": "staged"}
}
"""
ENVIRONMENT = {"CRM_TOKEN": "s3cret"}


def faults(text: str, name: str = "file.yaml") -> list[str]:
    with pytest.raises(FileError) as raised:
        read_text(text.encode(), name, {})
    return raised.value.lines


def test_a_file_of_an_mcp_host_is_read_with_what_stands_beside_its_servers():
    read = read_text(WHOLE, "file.json", ENVIRONMENT)
    crm, docs = read.declaration.entries()
    assert (crm.name, crm.settings.type, crm.settings.env) == ("crm", "stdio", {"TOKEN": "s3cret"})
    assert (crm.tool_filter, crm.aliases, crm.disclosure) == (["-drop"], {"lookup": "find"}, "flat")
    assert (docs.settings.type, docs.settings.headers) == ("http", {"Authorization": "Bearer none"})
    assert (docs.tool_filter, docs.disclosure) == (None, "staged")
    assert [one.name for one in read.declaration.groups] == ["customers"]
    assert read.warnings == []


def test_yaml_says_the_same_as_json():
    yaml = """\
mcpServers:
  crm: {command: node, args: [crm.js, "yes", "1"]}
groups:
  - name: customers
    members: [{kind: tool, name: crm__*}]
"""
    declared = read_text(yaml.encode(), "file.yml", {}).declaration
    assert declared.mcpServers["crm"].args == ["crm.js", "yes", "1"]
    assert declared.groups[0].members[0].name == "crm__*"


@pytest.mark.parametrize("word", ["yes", "on", "no", "off", "2026-01-01"])
def test_words_that_older_yaml_takes_for_something_else_stay_words(word):
    declared = read_text(f"mcpServers: {{a: {{command: {word}}}}}".encode(), "file.yaml", {}).declaration
    assert declared.mcpServers["a"].command == word


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "mcpServers:\n  a:\n    comand: npx\n",
            "file.yaml:3: mcpServers.a.comand: There is no such member; is command",
        ),
        (
            "mcpServers: {}\nconcernMapings: []\n",
            "file.yaml:2: concernMapings: There is no such member; is concernM",
        ),
        ("mcpServers:\n  a:\n    args: [x]\n", "file.yaml:2: mcpServers.a: A stdio server needs a command."),
        (
            "mcpServers:\n  a: {url: 'ftp://x'}\n",
            "file.yaml:2: mcpServers.a.url: A server's url must begin with https",
        ),
        ("mcpServers:\n  a b: {command: x}\n", "file.yaml:2: mcpServers.a b"),
        ("a: 1\na: 2\n", "file.yaml:2: A member's name occurs twice"),
        ("mcpServers: {a: &x {command: y}, b: *x}\n", "file.yaml:1: The file is not valid YAML: aliases"),
        ("mcpServers: [\n", "file.yaml:2: The file is not valid YAML"),
        ("- 1\n", "file.yaml:1: The file must contain an object"),
        (
            "mcpServers:\n  a:\n    command: x\n    env:\n      T: ${NOPE}\n",
            "file.yaml:5: mcpServers.a.env.T: The env",
        ),
        ("toolFilter:\n  crm: [a]\n", "file.yaml:2: toolFilter.crm: There is no server crm"),
        (
            "mcpServers: {a: {command: x}}\ntoolFilter:\n  a: [b, -c]\n",
            "file.yaml:3: toolFilter.a: A tool filter must",
        ),
        ("mcpServers: {a: {command: x}}\naliases: {b: c}\n", "file.yaml:2: aliases.b: An alias must map to"),
        ("disclosure:\n  a: flat\n", "file.yaml:2: disclosure.a: There is no server a"),
        (
            "groups:\n- name: a\n  members: [{kind: group, name: b}]\n- name: b\n  members: [{kind: group, name: a}]\n",
            "file.yaml:2: groups[0]: Groups must not contain themselves: a > b > a.",
        ),
        (
            "groups:\n- name: a\n  members: [{kind: group, name: b}]\n",
            "file.yaml:3: groups[0].members: There is no group",
        ),
        ("groups:\n- name: a\n- name: a\n", "file.yaml:3: groups[1]: a is listed twice."),
        (
            "groups:\n- name: a\n  members:\n  - {kind: tol, name: x}\n",
            "file.yaml:4: groups[0].members[0].kind: Input",
        ),
        (
            (
                "concerns:\n- {name: s, description: d, values: [a, b], default: a}\n"
                "concernMappings:\n- kind: tool\n  name: x\n  concerns:\n    s: c\n"
            ),
            "file.yaml:7: concernMappings[0].concerns.s: The concern s has no such value",
        ),
        (
            "concernMappings:\n- {kind: tool, name: x, concerns: {s: c}}\n",
            "file.yaml:2: concernMappings[0].concerns.s: There is no concern s",
        ),
    ],
)
def test_a_fault_is_told_with_file_line_and_reason(text, said):
    found = faults(text)
    assert [line for line in found if line.startswith(said)], found


def test_every_fault_of_a_file_is_told_at_once():
    found = faults("mcpServers:\n  a: {comand: x}\n  b: {url: 'x:'}\nconcern: []\n")
    assert len([line for line in found if line.startswith("file.yaml:")]) >= 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mcpServers": {}\n', "file.json:"),
        ('{"a": 1,\n "a": 2}', "file.json:2: An object has two members"),
        ('{"mcpServers":\n\t{"a":\n\t\t{"comand": "x"}}}', "file.json:3: mcpServers.a.comand"),
    ],
)
def test_json_is_told_with_its_lines_too_tabs_or_not(text, said):
    assert faults(text, "file.json")[0].startswith(said)


def test_members_of_other_programs_are_passed_over_and_named():
    text = '{"mcpServers": {"a": {"command": "x", "autoApprove": [], "disabled": true}},\n"globalShortcut": "F1"}'
    read = read_text(text.encode(), "file.json", {})
    assert read.paused == {"a"}
    assert read.warnings == [
        "file.json:2: globalShortcut: This member belongs to another program; it is ignored.",
        "file.json:1: mcpServers.a.autoApprove: This member belongs to another program; it is ignored.",
    ]


def test_faults_repeat_no_secret():
    said = faults('mcpServers: {a: {command: x, env: {TOKEN: ["hunter2"]}, headers: {A: {b: hunter2}}}}')
    assert said and "hunter2" not in "".join(said)


def test_a_file_that_is_not_there_and_one_that_is_too_large_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none.json")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(FileError, match="more than"):
        read_file(large)


def test_bytes_that_are_no_text_and_nesting_without_end_are_refused():
    with pytest.raises(FileError, match="not UTF-8"):
        read_text(b"\xff", "file.yaml", {})
    assert faults("[" * 100_000)


def test_a_file_of_the_largest_size_is_read(tmp_path):
    largest = tmp_path / "largest.json"
    largest.write_bytes(b"{}" + b" " * (MAX_BYTES - 2))
    assert read_file(largest).declaration
    largest.write_bytes(b"{}" + b" " * (MAX_BYTES - 1))
    with pytest.raises(FileError):
        read_file(largest)
