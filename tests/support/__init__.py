"""What tests of several folders share: meshes, layouts, ways to run."""
