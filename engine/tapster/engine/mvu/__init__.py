"""MVU: variables that a model's replies update, kept per message."""
