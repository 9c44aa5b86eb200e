"""Where usage outlives the process: memory (it does not), SQLite, PostgreSQL, Redis, behind one small protocol."""
