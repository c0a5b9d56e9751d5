"""What a run gives: metrics, recordings and events, with their types."""
