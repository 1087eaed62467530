"""The recipe of the classifier's weights; the service never imports it."""
