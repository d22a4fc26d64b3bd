"""A trace as files for others: an offline page, a picture, a timeline, figures, a graph. Records and layout only."""
