"""Values: events, ids, records, the state document, the three state machines.

There is no I/O, clock, randomness or ambient context here; time and ids are passed in. A reader who knows this folder
knows the product.
"""
