"""Programs that watch what the server of a live run serves."""
