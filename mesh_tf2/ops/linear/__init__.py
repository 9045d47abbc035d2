"""Linear operations; the gradient of each is made of others of them."""
