"""What the agent can do besides talking. Each tool takes one text and gives one."""
