"""What calls change on disk: pictures of named roots, the changes between them, and how to restore files.

    manifest      a picture of the roots: every file that git does not ignore, with stat, mode and hash
    contents      a cache of file contents by hash, so that overwritten content is still known
    capture       compares the pictures before and after a call and makes `file.changed` events
    file_history  what a file was at a point, according to the log
    restore_plan  what a restore would do to each file, and why some files cannot be restored
    restore       runs the plan, one file at a time; never overwrites what was edited since

Git's own data is never written: no ref, no index, nothing below `.git`.
"""
