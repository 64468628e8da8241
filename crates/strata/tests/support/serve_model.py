"""Serves a GGUF model over OpenAI's protocol on a free loopback port, until stdin is closed.

usage: serve_model.py MODEL.gguf KEY
"""

import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.api_keys = [sys.argv[2]]
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_parallel = 1
parameters.n_ctx = 4096
# Threads of llama.cpp wait for each other by spinning, which on a busy machine takes a hundred times longer than one alone.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.fit_params = False
# Without this so small a model says the same until its answer is cut off.
parameters.sampling.penalty_repeat = 1.3
parameters.sampling.penalty_last_n = 256
server = xllamacpp.Server(parameters)
print("serving", server.listening_address, flush=True)
sys.stdin.read()
