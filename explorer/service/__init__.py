"""What an operator needs around the page: limits, metrics, health, logs, a shutdown that leaves nothing behind."""
