"""The program: trains, evaluates, decodes. One run mode, one file."""
