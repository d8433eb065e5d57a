"""Tables as people have them."""
