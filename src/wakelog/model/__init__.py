"""Values: events, ids, records, the state document, the three machines.

No I/O, clock, randomness or ambient context lives here; time and ids are passed in. A reader who knows this
folder knows the product.
"""
