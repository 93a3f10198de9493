"""A package, so that what its fixtures start ends with its last test."""
