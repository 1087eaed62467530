"""People of identity providers: how they sign in to the console, and how they end."""
