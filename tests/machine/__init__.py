"""A state machine that holds random graphs of nnrs against an interpreter in NumPy that does nothing clever."""
