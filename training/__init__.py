"""How a model comes about. Imports models, data, decoding, evaluation."""
