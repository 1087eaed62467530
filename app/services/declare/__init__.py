"""The declarative file: read it, and apply it to a tenant."""
