"""Who owns which state: sessions, store, library, agents, hosts, providers (design §4)."""
