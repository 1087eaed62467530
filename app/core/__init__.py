"""The domain: data types, rules, errors and contracts, without any framework."""
