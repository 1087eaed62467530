"""What clients see of the servers, over REST."""
