"""What only a GPU can show: kernels against the reference in float64, their times, and whole runs."""
