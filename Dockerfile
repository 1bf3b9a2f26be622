# The operator as /manager, the command line as novacron. Whoever runs in it is not root, and
# nothing in it has to be written.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
# Drivers that are compiled (libvirt-python) need their compiler and headers here, in this stage:
# RUN apt-get update && apt-get install --yes --no-install-recommends gcc libvirt-dev pkg-config
WORKDIR /src
COPY requirements-bootstrap.lock requirements.lock ./
RUN python -m pip install --no-cache-dir --require-hashes --target /tools \
        -r requirements-bootstrap.lock \
    && python -m venv --without-pip /opt/novacron \
    && PYTHONPATH=/tools /tools/bin/uv pip install --no-cache --compile-bytecode \
        --python /opt/novacron/bin/python --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY src src
COPY examples examples
RUN PYTHONPATH=/tools /tools/bin/uv pip install --no-cache --compile-bytecode \
        --python /opt/novacron/bin/python --no-deps --no-build-isolation .

FROM python:${PYTHON}
# Libraries that drivers load at run time (libvirt0) and the built-in guest image go here.
RUN python -m pip uninstall --yes pip \
    && ln -s /opt/novacron/bin/manager /manager
COPY --from=build /opt/novacron /opt/novacron
ENV PATH=/opt/novacron/bin:${PATH} \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["/manager"]
