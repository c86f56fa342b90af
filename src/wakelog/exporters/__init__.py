"""Exports sessions to other formats. One file per format; each yields the text in parts.

    html_page.py        a page to read, for a browser
    openai_chat.py      the conversation as OpenAI chat messages
    claude_code_file.py a transcript that Claude Code can resume

An exporter opens no file and masks nothing: `share_mask` does the masking for all of them.
"""
