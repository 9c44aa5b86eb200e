"""Summary → text that people read: terminal, classic block, JSON, Markdown, CSV, HTML. One exporter a file.

Each is a pure function of the structs in ``metrics``; times and rates get their digits and units here and nowhere else.
"""
