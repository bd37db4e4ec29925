"""Fixed confidence: stop as soon as the best arm is known with error probability delta."""
