"""Random calls of every public name with arguments of all kinds: an error or a result, never a crash or a panic."""
