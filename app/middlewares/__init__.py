"""One file or folder per middleware; the registry discovers them by walking this package."""
