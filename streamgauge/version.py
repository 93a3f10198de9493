"""The version of the distribution, told to the collector and on the command line."""

__version__ = "0.1.0"
