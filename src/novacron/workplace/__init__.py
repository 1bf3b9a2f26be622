"""The machine we work on: where our files lie, who is at work there, which packages it lacks.

For everything that is made or kept on a user's machine. It knows neither Kubernetes nor virtual
machines.
"""
