"""The lessons: short stops on recorded traces, with figures that are computed from these."""
