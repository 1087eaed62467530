"""How the weights of content moderation are made; the service never imports this."""
