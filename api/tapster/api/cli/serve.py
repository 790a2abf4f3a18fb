"""``tapster serve``: the API and the page until a stop signal."""

import signal
import sys
from contextlib import ExitStack
from typing import Final

import click
import trio

from tapster.api.config import Config
from tapster.api.logs import LineWriter, open_lines, open_logs
from tapster.api.running import drain, open_running
from tapster.api.serving import last_resort, wait_for_stop

from .main import read_config

LAST_RESORT_S: Final = 30.0


@click.command("serve")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.")
@click.option("--store", type=click.Choice(["sqlite", "files"]), help="Where data is kept.")
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None, store: str | None) -> None:
    """Serve the API and the page until SIGTERM or Ctrl-C; a second signal stops at once."""
    config = read_config(context, host=host, port=port, store=store)
    with open_lines(sys.stdout) as output, open_logs(sys.stderr) as errors:
        trio.run(serve, config, output, errors)


async def serve(config: Config, output: LineWriter, errors: LineWriter) -> None:
    """Open everything, say where, and stop in order at a signal."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals, ExitStack() as stack:
        async with open_running(config) as running:
            for url in running.server.urls:
                output.msg(f"Tapster is ready: {url}/  (data in {config.data_dir})")
            await wait_for_stop(signals, lambda: drain(running, config.shutdown_grace_s), at_once=lambda: None)
            errors.msg("Tapster is stopping")
            # Armed only now and disarmed when everything is closed: a thread stuck in fsync can't hold the process.
            stack.enter_context(last_resort(LAST_RESORT_S))
