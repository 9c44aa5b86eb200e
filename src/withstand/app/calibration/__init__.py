"""What this client is good for on this machine: measured (``step``), searched for, kept, and used before a run."""
