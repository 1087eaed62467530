"""Skip needless work when Presidio loads: importing spaCy only for type names, compiling each pattern twice."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

_HOLLOW = frozenset({"spacy", "thinc"})
_LATER = frozenset({"requests", "tldextract"})
"""Used only by recognizers of Presidio that ours replace; loaded on first use."""
_RECOGNIZERS = "presidio_analyzer.predefined_recognizers"


class _Registers(type):
    """Returns a decorator factory that changes nothing for every attribute, which is how spaCy's registry is used."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: lambda decorated: decorated


class _Placeholder(metaclass=_Registers):
    """Stands in for a class of spaCy that is only referred to by name."""


class _Hollow(ModuleType):
    """A module in which every public name is a placeholder."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Placeholder


class _Finder(MetaPathFinder, Loader):
    """Resolves imports of spaCy and its submodules to placeholders, and loads other libraries on first use."""

    def __init__(self, unchecked: ExitStack) -> None:
        self._unchecked = unchecked

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for spaCy, for its library thinc, and for the libraries that load on first use."""
        if fullname == _RECOGNIZERS:
            self._unchecked.enter_context(compiled_once())
        if fullname.split(".", 1)[0] in _HOLLOW:
            return ModuleSpec(fullname, self, is_package=True)
        if fullname in _LATER and (spec := PathFinder.find_spec(fullname, path, target)) and spec.loader:
            spec.loader = LazyLoader(spec.loader)
            return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return _Hollow(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a placeholder has no code."""


@contextmanager
def without_spacy() -> Iterator[None]:
    """Import Presidio inside this block to save nearly a second and 30 MB.

    Presidio's engines for spaCy, Stanza and transformers do not work in such a process. Outside the block, the real
    spaCy can be imported as usual. If spaCy is already loaded, nothing changes.
    """
    if "spacy" in sys.modules:
        yield
        return
    with ExitStack() as unchecked:
        finder = _Finder(unchecked)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in [name for name in sys.modules if name.split(".", 1)[0] in _HOLLOW]:
                del sys.modules[name]


@contextmanager
def compiled_once() -> Iterator[None]:
    """Build recognizers inside this block without compiling each pattern just to validate it; saves half a second.

    A pattern is compiled, with its flags, where it is used; an error in it shows up there.
    """
    from presidio_analyzer.pattern import Pattern  # noqa: PLC0415 - Presidio: after the set-up

    name = "_Pattern__validate_regex"
    original = vars(Pattern)[name]
    setattr(Pattern, name, staticmethod(lambda _pattern: None))
    try:
        yield
    finally:
        setattr(Pattern, name, original)
