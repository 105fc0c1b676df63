"""Something real for the engine to talk to on a laptop: tools, control plane, plan."""
