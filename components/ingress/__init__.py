"""How requests come in: gateways, routes, tokens, limits."""
