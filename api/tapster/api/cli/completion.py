"""``tapster completion``: the script that teaches a shell to complete ``tapster``."""

import click
from click.shell_completion import get_completion_class

from .output import write_text


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; put it where your shell reads it.

    \b
    bash: tapster completion bash > ~/.local/share/bash-completion/completions/tapster
    zsh:  tapster completion zsh > "${fpath[1]}/_tapster"
    fish: tapster completion fish > ~/.config/fish/completions/tapster.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"there is no completion for {shell}")
    write_text(kind(context.find_root().command, {}, "tapster", "_TAPSTER_COMPLETE").source())
