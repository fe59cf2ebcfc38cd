"""Ranks among all candidates of a catalogue, of any number."""
