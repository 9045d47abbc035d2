"""The words of the language: names, shapes, layouts, the graph, its errors."""
