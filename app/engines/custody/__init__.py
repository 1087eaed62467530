"""Keys that never leave their place: what opens the key ring with a security module or a key service."""
