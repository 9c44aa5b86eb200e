"""One file a dataset. Each has ``open_dataset(workload, tokenizer, seed)`` and options of its own."""
