"""How translations are judged and drawn: strings and arrays only, no torch, no model."""
