"""How the primitives of servers are named, grouped, described and filtered."""
