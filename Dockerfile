# The operator as /manager, the command line as novacron. Whoever runs in it is not root, and
# nothing in it has to be written.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
# For the binding of libvirt, which is compiled, and for the built-in guest.
RUN apt-get update && apt-get install --yes --no-install-recommends \
        e2fsprogs gcc libvirt-dev pkg-config qemu-utils
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
# What the binding is built with goes again.
RUN locks=src/novacron/localcluster; \
    into="--no-cache --compile-bytecode --python /opt/novacron/bin/python --no-deps"; \
    export PYTHONPATH=/tools; \
    /tools/bin/uv pip install $into --require-hashes -r $locks/libvirt-build.lock \
    && /tools/bin/uv pip install $into --no-build-isolation --require-hashes -r $locks/libvirt.lock \
    && /tools/bin/uv pip uninstall --python /opt/novacron/bin/python -r $locks/libvirt-build.lock
RUN mkdir /images && /opt/novacron/bin/python -m novacron.guests tiny --output /images/tiny.qcow2

FROM python:${PYTHON}
# The libvirt driver's library, ssh for hosts that are reached by it, qemu-img for images. ssh
# refuses to work for a user without a name.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libvirt0 openssh-client qemu-utils \
    && rm -rf /var/lib/apt/lists/* \
    && python -m pip uninstall --yes pip \
    && groupadd --gid 65532 novacron \
    && useradd --no-log-init --uid 65532 --gid 65532 --home-dir /tmp --no-create-home \
        --shell /usr/sbin/nologin novacron \
    && ln -s /opt/novacron/bin/manager /manager
COPY --from=build /opt/novacron /opt/novacron
COPY --from=build /images /usr/share/novacron/images
ENV PATH=/opt/novacron/bin:${PATH} \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["/manager"]
