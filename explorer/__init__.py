"""Draft Tree Explorer: real speculative decoding, recorded step by step. Importing it is free."""
