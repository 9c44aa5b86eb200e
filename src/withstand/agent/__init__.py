"""A ReAct agent with tools behind an OpenAI-compatible address: a program under test, started and never imported."""
