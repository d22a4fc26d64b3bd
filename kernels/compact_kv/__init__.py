"""Moving the accepted rows of a tree right behind the committed ones; naive.py is the reference."""
