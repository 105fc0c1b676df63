"""One model as a complete service."""
