"""Where events of the audit record are delivered: files, buckets, syslog."""
