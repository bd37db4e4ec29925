"""Fixed confidence, several answers: the m best arms."""
