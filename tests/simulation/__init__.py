"""Deterministic simulation: one seed drives programs against the whole actor tree on a virtual clock.

``python -m tests.simulation --programs 20000`` is the nightly run, ``--seed N`` replays one program exactly and
shrinks it if it fails.
"""
