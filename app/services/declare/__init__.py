"""The declarative file: reading it and bringing a tenant to what it says."""
