"""The embedded control plane: credentials, processes, nodes."""
