"""One processor's view: meshes, collectives, pending sums, lowering, cost."""
