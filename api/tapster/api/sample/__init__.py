"""The sample library that ships with Tapster: a card, a preset, a persona and a world book of our own writing."""
