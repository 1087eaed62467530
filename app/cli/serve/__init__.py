"""``sluice serve``: the processes of the service."""
