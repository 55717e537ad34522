"""The speculation loop: exact speculative decoding of one token stream over llama.cpp."""
