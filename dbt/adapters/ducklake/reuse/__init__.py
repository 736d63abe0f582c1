"""`reuse`: a node, or a data test, is not computed while it would make what is there."""
