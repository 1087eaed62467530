"""Where closed months of the audit record are kept, and in which form: Parquet files in folders or buckets."""
