"""GPU nodes and everything that runs on each of them."""
