"""What several tests share: synthetic traces, and other doubles that need no model."""
