"""The reviewer's own commands: what a change does to an estate, and whether the policies let it pass."""
