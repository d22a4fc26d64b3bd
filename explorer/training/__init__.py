"""Recipes that make the shipped drafters: text from the target, its features, Medusa heads, the EAGLE layer."""
