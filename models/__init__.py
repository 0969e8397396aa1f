"""The architectures, p(target | source): one file each; they see masks, never what a token means."""
