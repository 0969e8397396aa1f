"""The architectures, p(target | source), a file each; they see masks, never what a token means."""
