"""Input formats: what users pass, checked and brought into one form."""
