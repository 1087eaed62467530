"""The recipe that trains the embedded name tagger; nothing here runs in the service (see README.md)."""
