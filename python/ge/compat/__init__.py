"""Other engines' interfaces on top of GE, for programs that were written for them."""
