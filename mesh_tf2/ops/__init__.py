"""The operations of the language, one idea a file."""
