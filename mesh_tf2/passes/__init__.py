"""From graphs to graphs."""
