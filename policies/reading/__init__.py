"""What policies have to know of objects, read in one place each."""
