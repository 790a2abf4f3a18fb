"""Pure answers: formats, text, activation, profiles, projections, traces (design §3)."""
