"""Model calls recorded with no other change in the program that makes them.

A request to a model repeats the conversation so far. So whoever sees the requests and their answers sees the
conversation: what the user said, what the model answered, which tools it asked for, and what they gave back. That is
the one idea here (conversation.py). Requests are seen in two ways: in the client library that sends them
(`wakelog.instrument`, one file a library), and on their way to the provider (`wakelog record`, proxy.py). Both read
them by model_request.py and hand them to recorder.py.
"""
