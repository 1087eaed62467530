"""What the doors in the shape of model providers remember: the providers of each tenant."""
