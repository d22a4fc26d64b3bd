"""Commands of ``python -m explorer``, one file each; torch is imported only when one runs."""
