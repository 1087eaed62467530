"""What Presidio would do at its start for nothing: import spaCy for names of types, compile each pattern twice."""

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
"""What only recognizers of Presidio use that ours replace; loaded when somebody does."""
_RECOGNIZERS = "presidio_analyzer.predefined_recognizers"


class _Registers(type):
    """Gives every attribute of a class as a decorator factory that changes nothing, as spaCy's registry wants."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: lambda decorated: decorated


class _Placeholder(metaclass=_Registers):
    """Stands for a class of spaCy that is only named."""


class _Hollow(ModuleType):
    """A module in which every public name is a placeholder."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Placeholder


class _Finder(MetaPathFinder, Loader):
    """Answers the import of spaCy and of all inside it, and has other libraries loaded at their first use."""

    def __init__(self, unchecked: ExitStack) -> None:
        self._unchecked = unchecked

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for the names of spaCy and its library thinc, and for what is loaded later."""
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
        """Do nothing: there is nothing to run."""


@contextmanager
def without_spacy() -> Iterator[None]:
    """Import Presidio inside and save nearly a second and 30 MB.

    Its engines for spaCy, Stanza and transformers do not work in such a process. Outside the block the real spaCy can
    be imported as ever. A spaCy that is already there is left alone.
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
    """Build recognizers inside without compiling each pattern only to see that it can be; saves half a second.

    Whoever uses a pattern compiles it, with its flags, and hears of a fault then.
    """
    from presidio_analyzer.pattern import Pattern  # noqa: PLC0415 - Presidio: after the set-up

    name = "_Pattern__validate_regex"
    original = vars(Pattern)[name]
    setattr(Pattern, name, staticmethod(lambda _pattern: None))
    try:
        yield
    finally:
        setattr(Pattern, name, original)
