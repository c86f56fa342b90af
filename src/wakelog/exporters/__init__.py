"""Sessions in the formats of others: one leaf file per format, each a stream of pieces to be written.

    html_page.py        a page to read, for a browser
    openai_chat.py      the conversation as OpenAI chat messages
    claude_code_file.py a transcript that Claude Code can resume

A leaf reads a session and yields text. It opens no file and masks nothing: `share_mask` does that for all of them.
"""
