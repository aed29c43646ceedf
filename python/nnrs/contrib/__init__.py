"""What NNabla keeps for old scripts."""
