"""Kernels of this project: torch and triton only, nothing from explorer."""
