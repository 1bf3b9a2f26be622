"""Guest images that we make ourselves, and the small disks that tell guests who they are.

It knows what runs inside a guest. It knows neither Kubernetes nor machines nor hypervisors.
"""
