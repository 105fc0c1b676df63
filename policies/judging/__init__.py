"""How policies are asked, and what comes of their answers."""
