"""Which packages of an answer an index does not have."""

import json

import pytest

from app.core.contracts.grounding import CheckOptions
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.packages import read_index
from tests.unit.engines.grounding.checking import findings, found_texts

PYPI = ("requests", "numpy", "PyYAML", "scikit-learn", "Flask-Login")
NPM = ("express", "@types/node", "left-pad", "react")


@pytest.mark.parametrize(
    "answer",
    [
        "Run `pip install requests`.",
        "pip install -U requests numpy==2.1 'scikit-learn[all]>=1'",
        "python -m pip install flask_login",
        "pip install -r requirements.txt",
        "pip install -e . --index-url https://x.dev/simple",
        "pip install git+https://a.dev/x.git",
        "Use pip install requests and then go on to the next step.",
        "pip install <package>",
        "uv add numpy",
        "```python\nimport os, json\nimport yaml\nfrom sklearn.svm import SVC\nfrom . import mine\n```",
        "npm install express left-pad@1.3.0 @types/node",
        "npm i -g react",
        "yarn add react",
        "```js\nconst fs = require('fs');\nimport x from 'node:path';\nimport './a.js';\nimport 'react';\n```",
    ],
)
async def test_what_the_index_has_passes(answer):
    assert await found_texts("packages", answer, pypi=PYPI, npm=NPM) == []


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("pip install reqests", "reqests"),
        ("Run `pip install fastauth-helper`.", "fastauth-helper"),
        ("pip install numpy quantumlib==2", "quantumlib"),
        ("```python\nfrom quantumlib.core import x\n```", "quantumlib"),
        ("npm install expres", "expres"),
        ("```ts\nimport { a } from '@acme/core/sub';\n```", "@acme/core"),
    ],
)
async def test_what_it_does_not_have_is_found(answer, name):
    assert await found_texts("packages", answer, pypi=PYPI, npm=NPM) == [name]


async def test_a_name_that_differs_by_a_letter_comes_with_the_one_that_exists_and_no_fix():
    for wrong in ("reqests", "requessts", "requets", "rqeuests", "request"):
        (found,) = await findings("packages", f"pip install {wrong}", pypi=PYPI)
        assert (found.suggestions, found.fix, found.severity) == (("requests",), None, "high")


async def test_a_package_of_the_context_is_the_users_own():
    answer = "```python\nimport billing\n```"
    assert await found_texts("packages", answer, "Our module is billing.", pypi=PYPI) == []


async def test_an_ecosystem_without_an_index_is_not_checked():
    assert await found_texts("packages", "npm install nothing-at-all", pypi=PYPI) == []


async def test_the_operators_index_is_read_once_and_the_callers_stands_over_it(tmp_path):
    path = tmp_path / "index.json"
    path.write_text(json.dumps({"pypi": ["requests"]}), encoding="utf-8")
    checker = RuleChecker(lambda: read_index(path))
    options = CheckOptions(frozenset({"packages"}))
    (found,) = await checker.check(["pip install requests numpy"], [], options)
    assert len(found) == 1
    path.unlink()
    options = CheckOptions(frozenset({"packages"}), {"pypi": frozenset({"numpy"})})
    (found,) = await checker.check(["pip install numpy"], [], options)
    assert found == []
    assert read_index(None) == {}
