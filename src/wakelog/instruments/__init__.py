"""Records model calls without any other change in the program that makes them.

A request to a model repeats the conversation so far. So the requests and their answers show the whole conversation:
what the user said, what the model answered, which tools it requested, and their results. That is the one idea here
(conversation.py). Requests are observed in two ways: in the client library that sends them (`wakelog.instrument`, one
file per library), and on their way to the provider (`wakelog record`, proxy.py). Both read them with model_request.py
and pass them to recorder.py.
"""
