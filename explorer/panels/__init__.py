"""What only one method has to show of a step, one module a method: from the tree and ``step.extra``."""
