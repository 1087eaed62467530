"""The pages, one module each: routes, and what their templates are given."""
