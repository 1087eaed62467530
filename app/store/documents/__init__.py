"""Tables of documents and the queries on them."""
