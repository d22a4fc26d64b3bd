"""Tests mirror explorer/ and kernels/ path for path; tests/structure/ guards the shape of the project itself."""
