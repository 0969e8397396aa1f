"""Text becomes batches here; this room imports nothing of the others."""
