"""Arithmetic of arrays and variables; as in NNabla, there is nothing to import from here."""
