"""Networks: attention, cache and drafters. No loading, no loop."""
