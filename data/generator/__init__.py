"""The generator behind data/grammar.py: words, phrases, clauses, sentences, each from the last."""
