"""What is wrong with the way to a model: judgements of what was heard on it. Pure; ``app.doctor`` does the asking."""
