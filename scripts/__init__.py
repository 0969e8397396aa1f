"""Small commands over runs and files, each run as `python -m scripts.NAME`."""
