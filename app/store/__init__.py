"""Tables and queries; the only room that knows SQLAlchemy."""
