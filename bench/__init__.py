"""What is timed, and how it stands against the figures that the project sets itself."""
