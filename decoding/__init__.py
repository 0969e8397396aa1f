"""How a trained model is used: search, translation, forced alignment. Imports models and data."""
