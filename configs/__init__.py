"""The gin files that are shipped: models, layouts, problems and runs."""
