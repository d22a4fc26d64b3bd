"""Decoding methods: one file each, all drafting the one DraftTree."""
