"""Code that several formats share: messages of model APIs, effects of tools, file changes, state as patches."""
