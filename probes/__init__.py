"""The only code that runs inside the cluster; standard library only."""
