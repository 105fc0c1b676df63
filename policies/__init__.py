"""What a reviewer refuses: one module a theme, judged on rendered objects."""
