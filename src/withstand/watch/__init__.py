"""WATCH the server's side: an engine's metrics, the machine and its GPUs, as samples on the run's clock."""
