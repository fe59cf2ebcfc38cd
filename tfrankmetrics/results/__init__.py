"""What the functions return, and how it is shown."""
