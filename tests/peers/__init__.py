"""Other packages' decoding of the default target, beside ours: measured in an environment of their own."""
