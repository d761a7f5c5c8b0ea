"""What keeps `perfdb dashboard` from listening, said before it starts."""

import socket

import pytest

from dashboards.cli import check_free
from perfdb.errors import InputError


@pytest.mark.parametrize("host", ["no..name", "192.0.2.1"])
def test_an_address_that_this_machine_does_not_have_names_the_option(host):
    """192.0.2.0/24 is for documentation (RFC 5737): no machine has it."""
    with pytest.raises(InputError, match=f"--host: '{host}' is no address of this machine: "):
        check_free(host, 8501)


def test_a_port_that_is_in_use_names_the_option_and_is_free_afterwards():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"--port: {port} is in use; name another"):
            check_free("127.0.0.1", port)
    check_free("127.0.0.1", port)
