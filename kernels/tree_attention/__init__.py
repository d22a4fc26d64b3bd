"""Attention of tree rows over a whole prefix and their own ancestors; naive.py is the reference."""
