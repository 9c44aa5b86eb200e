"""Prefill and decode on different engines: what each is sent, in which order, and what follows when one fails."""
