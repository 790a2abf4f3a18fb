"""The actor kernel: inbox, ask, supervisor, nurseries, lifecycle (design §2)."""
