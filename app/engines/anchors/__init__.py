"""Where checkpoints of the audit log are kept: files, buckets, syslog, witnesses."""
