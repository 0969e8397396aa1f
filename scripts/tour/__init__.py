"""The steps of scripts.attention_tour, a file each; the models' own code computes them."""
