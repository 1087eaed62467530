"""Which fenced code parses; what is left out on purpose is no fault."""

import pytest

from tests.unit.engines.grounding.checking import findings, found_texts

GOOD = [
    ("python", "x = 1"),
    ("python", ">>> f(1)\n2\n>>> for i in x:\n...     pass\n"),
    ("python", "def f():\n    ...\n"),
    ("python", "    return x\n"),
    ("py", "await foo()"),
    ("python", "def f(...):\n    pass"),
    ("python", 'd = {"a": 1, ...}'),
    ("python", "%pip install x\n!ls\nimport x"),
    ("python", "class A:\n    def f(self):"),
    ("python", "re.compile('\\d')"),
    ("json", '{"a": 1}'),
    ("json", '{"a": [1, ...]}'),
    ("json", '{\n "a": 1,\n ...\n}'),
    ("json", '{"a":1}\n{"b":2}'),
    ("json", '{"a": 1, // why\n "b": 2}'),
    ("yaml", "a: 1\nb:\n  - c\n"),
    ("yaml", "a: {{ .Values.x }}"),
    ("toml", "a = 1\n[x]\nb = 'c'"),
    ("js", "const x = await fetch('a');\nconst y = <div>hi</div>;"),
    ("javascript", "{ a: 1, b: [2] }"),
    ("javascript", "function f() {\n  // ...\n}\n...\n"),
    ("typescript", "interface A { x: number }\nconst f = <T,>(x: T): T => x;"),
    ("tsx", "const a = <p className='x'>{y}</p>;"),
    ("java", "int x = 3;\nSystem.out.println(x);"),
    ("java", "@Override\npublic int f() { return 1; }"),
    ("go", "x := 1\nfmt.Println(x)"),
    ("rust", 'let x = 5;\nprintln!("{}", x);'),
    ("c", '#include <stdio.h>\nint main(void) { printf("a"); return 0; }'),
    ("bash", "$ pip install x\nCollecting (x\n$ ls"),
    ("bash", "pip install <package>"),
    ("sh", "if [ -f x ]; then\n  echo y\nfi"),
    ("console", "user@host:~$ ls -l\ntotal 3 (a\n"),
    ("python", "- x = (1\n+ x = (2\n"),
    ("", "anything ( goes"),
    ("mermaid", "graph (("),
]
BAD = [
    ("python", "def f(:\n  pass"),
    ("python", "print 'a'"),
    ("python", "x = (1,\ny = 2"),
    ("python", "for i in range(3)\n    print(i)"),
    ("json", '{"a": }'),
    ("json", "{'a': 1}"),
    ("yaml", "a: b: c\nd: [1"),
    ("toml", "a = "),
    ("javascript", "function f( { return 1; }"),
    ("javascript", "const = 3;"),
    ("typescript", "interface A { x: }"),
    ("java", "public class A { int x = ; }"),
    ("go", "func main( { }"),
    ("rust", "fn main() { let = 3 }"),
    ("c", "int main( { return 0 }"),
    ("bash", "if [ -f x ]; then echo"),
]


@pytest.mark.parametrize(("language", "source"), GOOD)
async def test_code_that_parses_or_is_shortened_passes(language, source):
    assert await findings("code", f"Do this:\n\n```{language}\n{source}\n```\n") == []


@pytest.mark.parametrize(("language", "source"), BAD)
async def test_code_that_does_not_parse_is_found(language, source):
    answer = f"Do this:\n\n```{language}\n{source}\n```\nThen that."
    assert await found_texts("code", answer) == [f"{source}\n"]


async def test_a_fence_that_is_never_closed_is_read_to_the_end():
    assert await found_texts("code", "```json\n{oops") == ["{oops"]


async def test_fences_of_tildes_and_longer_fences_are_fences():
    assert await found_texts("code", "~~~~json\n{oops\n~~~\n~~~~\n{") == ["{oops\n~~~\n"]


@pytest.mark.parametrize(
    "source", ["(" * 10_000, "x" * 30_000, "[" * 59, "{'" * 40], ids=["deep", "long", "open", "odd"]
)
async def test_hostile_code_costs_little_and_never_fails(source):
    for language in ("python", "json", "yaml", "javascript", "rust"):
        assert len(await findings("code", f"```{language}\n{source}\n```")) <= 1
