"""The backends of this build, one module each; `nnrs.ext_utils` finds them by name."""
