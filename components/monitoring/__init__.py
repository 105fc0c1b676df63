"""What watches the estate."""
