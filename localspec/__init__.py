"""localspec: open models on your own laptop, faster than plain decoding, saying what they would say anyway."""

__version__ = "0.1.0"
