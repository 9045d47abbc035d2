"""The Transformer on a mesh: models, layers, schedules and run modes."""
