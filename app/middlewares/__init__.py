"""One file per middleware; the registry finds them by walking this package."""
