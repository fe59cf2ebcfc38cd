"""Input formats: the arguments of users, checked and converted to one form."""
